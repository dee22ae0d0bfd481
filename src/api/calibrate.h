// Private to api: measures the tables of a target on this machine (heddle calibrate).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "target/target.h"

namespace heddle::api {

struct CalibrateProgress {
  int64_t done = 0, tasks = 0;
  std::string what;  // what is measured next
};

// A memory-bound kernel: prediction with the new target, and measurement.
struct CalibrateFit {
  std::string name;
  double predicted_ns = 0, measured_ns = 0;
};

struct Calibration {
  target::Target target;  // the host's, with measured values instead of shipped ones
  std::vector<CalibrateFit> fits;
  // exp(mean |log(predicted / measured)|) - 1, and the largest such error.
  double geomean_error = 0, worst_error = 0;
  double seconds = 0;
};

struct CalibrateOptions {
  std::string name = "calibrated";  // of the target
  std::function<void(const CalibrateProgress&)> progress;
};

// Measures bandwidth by size, constants of calls and forks, and cycles of operators, all with
// kernels of this compiler, as the best of many short batches, so that other work on the machine
// prolongs the measurement instead of distorting it. About 20 s. Errors: machine (no code
// generator).
Result<Calibration> calibrate(const CalibrateOptions& options);

}  // namespace heddle::api
