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
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "base/error.h"
#include "kernel/kernel.h"

namespace heddle::lower {

struct TrimGroup {
  kernel::BufferId extent;  // global in: its first element, s32, is the actual extent
  int64_t bound = 1;        // of the numbers in the group
  bool reduced = false;     // by this kernel
  int64_t least = 1;        // there are no fewer numbers
  int64_t times = 1;        // numbers to one of the extent: rows of a batch
  int64_t beyond = 0;       // so many numbers behind them are wanted, too: zeros, for windows
  bool windows = false;     // there is a window over other numbers for each of them
};

// Elements [k * stride, (k + 1) * stride) of a buffer (modulo bound * stride) are of number k.
struct TrimDigit {
  int64_t stride = 1;
  int group = 0;
  // What readers count on reaches to the extent (not the numbers of a group) rounded up to it.
  int64_t reach = 1;
  bool window = false;  // of an input: what is read stands around the number that is computed
};

struct TrimRequest {
  std::vector<TrimGroup> groups;
  // By global buffer, but for workspaces, which stand behind inputs and outputs.
  std::vector<std::vector<TrimDigit>> globals;
  bool reads_windows(int group) const;  // along the group
};

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

// The least number that both divide: as far as what counts on both. Large ones are 2^40.
int64_t common_reach(int64_t a, int64_t b);
// How far results are counted on along the extent of each group: the common reach of its digits.
std::vector<int64_t> counted_on(const TrimRequest& request);

// A request from text: "extent in1 bound 64 least 17; in0 8; out0 8 reach 4", where a buffer has
// the strides of its digits, of the extent named last in front; `window` may stand in place of a
// reach. Behind `bound` may stand `least N`, `times N`, `beyond N`, `reduced` and `windows`. User's
// fault: what is no such text, or names no global buffer.
Result<TrimRequest> parse_trim_request(const kernel::Kernel& kernel, std::string_view text);

}  // namespace heddle::lower
