// Private to trim: which variables of a kernel move over dynamic dimensions (trim.h).
#pragma once

#include <cstdint>
#include <vector>

#include "lower/trim_access.h"

namespace heddle::lower::trimming {

// A digit of a buffer, in elements: `base` and `first` are what has to be added to it for the
// number in the group. It counts to `round`; numbers of the group are below `extent`, in scratch as
// far as known variables reach: what moves further is another dimension outside of it.
struct Digit {
  int64_t stride = 1, extent = 0, round = INT64_MAX;
  int group = 0;
  Terms base;  // of variables around it
  int64_t first = 0;
  bool scratch = false;
};

struct Facts {
  std::vector<Variable> variables;  // by VarId
  std::vector<Touch> touches;       // of global and scratch buffers, in order
};

// `left`: digits of groups that are not in the request, as loops over them run to the bound.
Refusal find_facts(const Kernel& kernel, const TrimRequest& request,
                   const std::vector<std::vector<TrimDigit>>& left, Facts* facts);

}  // namespace heddle::lower::trimming
