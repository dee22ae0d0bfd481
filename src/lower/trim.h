// Kernels of arrays whose dynamic dimensions are at their bound, run for what is there: loops and
// tasks over such a dimension stop at the actual extent, which the kernel reads from a buffer.
//
// Which loops those are is found in the indices. A dimension of a global buffer is a digit of its
// flat index; a variable that moves in it belongs to the digit's group, and through the variables
// the digits of scratch and of workspaces are found. Elements behind the extent need not be
// computed, and what is computed of them may be anything, so a loop may run a little further. A
// group that the kernel reduces has neutral values there: its loops stop where steps end, at the
// extent rounded up to a number that all of its steps divide, and what they read reaches as far.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/decision.h"
#include "lower/trim_request.h"

namespace heddle::lower {

// What the pass is asked (Context::trim), and what it found.
struct Trim {
  TrimRequest request;
  // No: the kernel is as it was. Codes: trim-form (kinds of kernels that are not looked into),
  // trim-index (an index that is no sum of variables), trim-digit (digits of a buffer that do not
  // line up), trim-reduced (a loop over a reduced group that would not stop at the extent),
  // trim-off (the pass was left out).
  Decision done = Decision::no("trim-off", "the pass trim was left out");
  // Why loops over a group run to its bound, by group; of a kernel that is trimmed for others.
  std::map<int, Decision> left;
  // How far the kernel counts on the request's buffers, by buffer and digit.
  std::vector<std::vector<int64_t>> reads;
};

}  // namespace heddle::lower
