// The records that tuning would try, without measuring: those that the rules give for each shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/session.h"

namespace heddle::api {

struct TuneShape {
  std::string key, name;             // of its record; first instruction with this shape
  int64_t uses = 1;                  // number of kernels of the model with this shape
  int64_t candidates = 0;            // number given by the rules
  std::vector<std::string> records;  // the best of these by predicted time, the static rule's first
};

// At most `most` records per shape; shapes with the most work first. For any CPU target: nothing
// runs. Errors: user (a compiled program, a GPU target), those of a compilation.
Result<std::vector<TuneShape>> tune_list(const Model& model, const CompileOptions& options,
                                         int64_t most);

}  // namespace heddle::api
