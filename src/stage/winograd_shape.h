// The tile of Winograd's algorithm that a row of a schedule may be: its record, and the matched
// shape of the convolution, by value (winograd.h matches and chooses).
#pragma once

#include <cstdint>

#include "stage/gemm_shape.h"

namespace heddle::stage {

// The record.
struct Winograd {
  int m = 2;            // outputs along a side of a tile
  Gemm tile;            // mr, nv, lanes, ku, prefetch of the products
  int64_t lines = 1;    // lines of tiles of a task
  int64_t columns = 0;  // output features of a task
  bool operator==(const Winograd&) const = default;
};

// A convolution seen as the family needs it. Digits as in GemmShape.
struct WinogradShape {
  GemmShape roles;               // batch, y, m (along a line), n, loads
  int c = -1, ky = -1, kx = -1;  // reduced digits
  int64_t panel = 0;             // adjacent features in a transformed filter
  int64_t images = 1, height = 1, width = 1, channels = 1, features = 1;
  // Line y + a of the window is inside if 0 <= y + a + y_offset < y_span; along x likewise.
  int64_t y_offset = 0, y_span = 0, x_offset = 0, x_span = 0;
};

// A convolution: the first stage of its row. Stages joined to it are its epilogue.
struct WinogradTile {
  Winograd record;
  WinogradShape shape;
};

}  // namespace heddle::stage
