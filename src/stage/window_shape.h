// The matched forms of windows along an image (windows.h), and of a pool after a convolution
// (pooled.h), as plain data.
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
  int across = -1;          // reduced digit that is unrolled; -1: none
  std::vector<int> inputs;  // reduced digits of a group's inputs, unrolled around `across`
  std::vector<int> rows;    // the other reduced digits: loops
  int64_t columns = 1;      // how many elements of `column` are held
  // The instruction of a step of the sum. With words, the last of `inputs` counts them.
  const kernel::MmaDescriptor* mma = kernel::plain_mma();
  // Steps along a reduced digit of `extent` elements.
  int64_t steps(int digit, int64_t extent) const {
    return !inputs.empty() && digit == inputs.back() ? extent / mma->k : extent;
  }
};

// A convolution and the pool after it.
struct Pooled {
  std::vector<StageId> joined;  // the convolution, then the maps of its epilogue
  StageId value;                // the one of these that the pool reads
  StageId pool;
  std::vector<StageId> behind;    // maps after the pool, digit for digit
  GemmShape shape;                // of the convolution
  std::vector<int> value_digits;  // by the value's out digit: the convolution's digit
  WindowForm form;                // of the pool: its lanes, its columns
  std::vector<int> batch;         // the pool's out digits that are neither lines, columns nor lanes
  int line = -1;                  // its out digit of lines
  // Pooled line i reads `reach` lines of the convolution, from i·stride + first on.
  int64_t stride = 1, first = 0, reach = 1;
  // The convolution's result is an output too: every line is read once, from where it was stored.
  bool keeps = false;
  Decision decision = Decision::yes();
};

}  // namespace heddle::stage
