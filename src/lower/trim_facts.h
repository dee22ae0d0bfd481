// Private to trim: which variables of a kernel move over dynamic dimensions (trim.h).
#pragma once

#include <vector>

#include "lower/trim_digits.h"

namespace heddle::lower::trimming {

struct Facts {
  std::vector<Variable> variables;  // by VarId
  std::vector<Touch> touches;       // of global and scratch buffers, in order
};

// `left`: digits of groups that are not in the request, as loops over them run to the bound.
Refusal find_facts(const Kernel& kernel, const TrimRequest& request,
                   const std::vector<std::vector<TrimDigit>>& left, Facts* facts);

}  // namespace heddle::lower::trimming
