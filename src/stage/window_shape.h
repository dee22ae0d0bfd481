// Windows along an image (windows.h), and a pool behind a convolution (pooled.h), as they were
// matched, by value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/decision.h"
#include "stage/gemm_shape.h"

namespace heddle::stage {

// Digits of a reduction stage, out digits first. Every load is contiguous along `lane`, or one
// element for the lanes of a group, or does not use it.
struct WindowForm {
  int lane = -1;            // out digit of the lanes
  int column = -1;          // out digit of which several elements are held at once
  int across = -1;          // reduced digit that is written out; -1: none
  std::vector<int> inputs;  // reduced digits of a group's inputs, written out around `across`
  std::vector<int> rows;    // the other reduced digits: loops
  int64_t columns = 1;      // how many elements of `column` are held
  // What a step of the sum does. Words: the last of `inputs` counts them.
  const kernel::MmaDescriptor* mma = kernel::plain_mma();
  // Steps along a reduced digit of so many elements.
  int64_t steps(int digit, int64_t extent) const {
    return !inputs.empty() && digit == inputs.back() ? extent / mma->k : extent;
  }
};

// A convolution and the pool behind it.
struct Pooled {
  std::vector<StageId> joined;  // the convolution, then the maps of its epilogue
  StageId value;                // of these, what the pool reads
  StageId pool;
  std::vector<StageId> behind;    // maps of the pool's results, digit for digit
  GemmShape shape;                // of the convolution
  std::vector<int> value_digits;  // by the value's out digit: the convolution's digit that it is
  WindowForm form;                // of the pool: its lanes, its columns
  std::vector<int> batch;         // the pool's out digits that are neither lines, columns nor lanes
  int line = -1;                  // its out digit of lines
  // Pooled line i sees the convolution's lines from i·stride + first on, `reach` of them.
  int64_t stride = 1, first = 0, reach = 1;
  // The convolution's result leaves too: every line is seen once, and read where it was stored.
  bool keeps = false;
  Decision decision = Decision::yes();
};

}  // namespace heddle::stage
