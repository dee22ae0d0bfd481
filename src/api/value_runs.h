// Private to api: runs a model over samples and records what its f32 values were, for mixed
// precision (precision/value_ranges.h). The optimised module gets these values as results; where
// all of them would take too much memory, several programs show a part of them each, one after the
// other, so that memory grows neither with the samples nor with the model's depth.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/session.h"
#include "precision/value_ranges.h"

namespace heddle::api {

struct ValueRunOptions {
  // False: what mixed precision decides on. True: the gradients of a step of training.
  bool gradients = false;
  int64_t samples = 0;
  // A value an input, in the model's order.
  std::function<Result<std::vector<tensor::Literal>>(int64_t sample)> inputs;
  // Before every run; false ends it with an error of the cancelled kind.
  std::function<bool(int64_t done, int64_t all)> progress;
  int64_t most_bytes = int64_t{256} << 20;  // of the results of one program
};

struct SeenValue {
  std::string name;   // precision::same_value
  std::string input;  // of a gradient: the input that its update keeps
  bool is_constant = false;
  precision::ValueRange seen;
};

struct SeenValues {
  std::vector<SeenValue> values;  // in the order of the graph
  int64_t programs = 0, runs = 0;
};

// Values are those of the target and level in `options`, which are to be those of the program that
// is to use the records; on the cpu the runs themselves are for this machine, in f32. State arrays
// (random numbers) begin anew in each run. Errors: user (a compiled program; no step of training),
// machine, cancelled.
Result<SeenValues> run_values(const Model& model, const CompileOptions& options,
                              const ValueRunOptions& runs);

}  // namespace heddle::api
