// Private to api: runs a model over samples and records the ranges of its f32 values, for mixed
// precision (precision/value_ranges.h). The optimised module returns these values as results; if
// all of them would take too much memory, several programs return a part each, one after another,
// so that memory grows neither with the samples nor with the model's depth.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/session.h"
#include "precision/value_ranges.h"

namespace heddle::api {

struct ValueRunOptions {
  // False: the values that mixed precision decides on. True: the gradients of a training step.
  bool gradients = false;
  int64_t samples = 0;
  // One value per input, in the model's order.
  std::function<Result<std::vector<tensor::Literal>>(int64_t sample)> inputs;
  // Called before every run; false ends it with an error of the cancelled kind.
  std::function<bool(int64_t done, int64_t all)> progress;
  int64_t most_bytes = int64_t{256} << 20;  // of the results of one program
};

struct SeenValue {
  std::string name;   // precision::same_value
  std::string input;  // for a gradient: the input that it updates
  bool is_constant = false;
  precision::ValueRange seen;
};

struct SeenValues {
  std::vector<SeenValue> values;  // in the order of the graph
  int64_t programs = 0, runs = 0;
};

// Values are those for the target and level in `options`, which must be those of the program that
// will use the records; on the cpu the runs themselves use this machine's target, in f32. State
// arrays (random numbers) are reset before each run. Errors: user (a compiled program; not a
// training step), machine, cancelled.
Result<SeenValues> run_values(const Model& model, const CompileOptions& options,
                              const ValueRunOptions& runs);

}  // namespace heddle::api
