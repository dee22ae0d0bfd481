// What a kernel is trimmed for (trim.h): dynamic dimensions, and where they are in its buffers.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

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
  // Buffers whose elements are made from nothing along a dimension as long as a group's, as numbers
  // of positions are: a loop over one may be over the group.
  std::set<size_t> made;
  bool reads_windows(int group) const;  // along the group
};

// The least number that both divide: as far as what counts on both. Large ones are 2^40.
int64_t common_reach(int64_t a, int64_t b);
// How far results are counted on along the extent of each group: the common reach of its digits.
std::vector<int64_t> counted_on(const TrimRequest& request);

// A request from text: "extent in1 bound 64 least 17; in0 8; out0 8 reach 4; made in2", where a
// buffer has the strides of its digits, of the extent named last in front; `window` may stand in
// place of a reach. Behind `bound` may stand `least N`, `times N`, `beyond N`, `reduced` and
// `windows`. User's fault: what is no such text, or names no global buffer.
Result<TrimRequest> parse_trim_request(const kernel::Kernel& kernel, std::string_view text);

}  // namespace heddle::lower
