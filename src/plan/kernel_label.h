// A readable name in addition to a kernel's hash: "dot_gelu", "softmax_select.2".
#pragma once

#include <map>
#include <string>

#include "hlo/module.h"

namespace heddle::plan {

// Made of the most expensive operators (at most four), in the order in which they are computed:
// contractions, reductions, sorts and gathers first, then functions and divisions, then arithmetic,
// then movement. A softmax, a normalisation and a GELU are one word each. Depends on the
// computation alone.
std::string kernel_label(const hlo::Computation& fusion);

// Labels that are unique: the second of a name ends in ".2". Deterministic.
class KernelLabels {
 public:
  std::string label_of(const hlo::Instr& fusion);

 private:
  std::map<std::string, int64_t> uses_;
};

}  // namespace heddle::plan
