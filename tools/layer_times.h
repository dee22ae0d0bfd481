// What the layers of a model take before and after it was quantised, measured by turns.
#pragma once

#include <string>
#include <vector>

#include "calibration_runs.h"

namespace heddle::tools {

struct TimedLayer {
  std::string name;  // of its node
  double share = 1;  // of what kernels of several layers take: its weights
};

// Medians of one run, in ms.
struct LayerTimes {
  std::vector<double> layers;
  double others = 0;  // kernels that are of no layer
  double total() const;
};

// A kernel's time is shared out by weights among its layers, those whose nodes it does. Of these
// count the ones that have fewest kernels: the names of what was rewritten away stay at what took
// its place. Error (cancelled): Ctrl-C.
struct TimesBeforeAndAfter {
  LayerTimes f32, quantized;
};
Result<TimesBeforeAndAfter> time_layers(const CalibrationRuns& runs, const EditedModel& f32,
                                        const EditedModel& quantized,
                                        const std::vector<TimedLayer>& layers, Progress* progress);

}  // namespace heddle::tools
