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
  std::string what;  // that is measured next
};

// A memory-bound kernel: what the new target predicts beside what was measured.
struct CalibrateFit {
  std::string name;
  double predicted_ns = 0, measured_ns = 0;
};

struct Calibration {
  target::Target target;  // the host's, with what was measured in place of the shipped figures
  std::vector<CalibrateFit> fits;
  // exp(mean |log(predicted / measured)|) - 1, and the largest of them.
  double geomean_error = 0, worst_error = 0;
  double seconds = 0;
};

struct CalibrateOptions {
  std::string name = "calibrated";  // of the target
  std::function<void(const CalibrateProgress&)> progress;
};

// Bandwidth by size, the constants of calls and of forks, cycles of operators. Everything is
// measured through kernels that this compiler makes, best of many short batches, so that other work
// on the machine lengthens it rather than spoils it. About 20 s. Errors: machine (no code
// generator).
Result<Calibration> calibrate(const CalibrateOptions& options);

}  // namespace heddle::api
