// The image lines that a block of a convolution's lines reads, copied for an instruction on tiles:
// with zeros where the window is outside, so that rows of A have the same stride throughout the
// block. Sizes are in elements of A.
#pragma once

#include <cstdint>
#include <optional>

#include "stage/gemm_shape.h"

namespace heddle::stage {

// Rows, and columns, of a fragment of sums (the tiles of kernel/mma.def).
inline constexpr int64_t kFragmentSide = 16;
inline int64_t whole_fragments(int64_t rows) {
  return (rows + kFragmentSide - 1) / kFragmentSide * kFragmentSide;
}

struct WindowLines {
  struct Axis {
    int k = -1;  // the window's digit; -1: one tap
    int64_t taps = 1, stride = 1, dilation = 1;
    int64_t offset = 0, span = 0;  // of the window; span 0: never outside
    int64_t step = 0;              // stride in A between neighbours
    int64_t reach(int64_t count) const { return (count - 1) * stride + (taps - 1) * dilation + 1; }
  };
  Axis down, across;                                    // over lines; over the rows of a line
  int64_t rows = 1;                                     // of a line
  int64_t channels = 1;                                 // of a pixel
  int64_t width() const { return across.reach(rows); }  // pixels of a copied line
  // Whether rows have the same stride across lines as within one: then the rows between two lines
  // are computed too.
  bool runs_on() const { return down.stride == 1 && across.stride == 1; }
  int64_t rows_of_line() const;       // from one line's first row to the next one's, in the sums
  int64_t sums(int64_t count) const;  // rows of sums of `count` lines
  int64_t elements(int64_t count) const;  // of the copy, with what its last tile reads past it
  int64_t first_inside() const;           // pixels [first, last) of a copied line are in the image
  int64_t last_inside() const;
};

// None: the shape's windows are not of that form.
std::optional<WindowLines> window_lines(const GemmShape& shape, const Stage& stage);

}  // namespace heddle::stage
