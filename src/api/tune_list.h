// What tuning would try, without measuring: the records that the rules give for each shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/session.h"

namespace heddle::api {

struct TuneShape {
  std::string key, name;             // of its record; the instruction that has it first
  int64_t uses = 1;                  // kernels of the model with this shape
  int64_t candidates = 0;            // that the rules gave
  std::vector<std::string> records;  // of these the best by predicted time, the static rule's first
};

// At most `most` records a shape; shapes with most work first. For any CPU target: nothing runs.
// Errors: user (a compiled program, a GPU's target), as of a compilation.
Result<std::vector<TuneShape>> tune_list(const Model& model, const CompileOptions& options,
                                         int64_t most);

}  // namespace heddle::api
