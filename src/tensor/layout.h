// Layout: the placement of an array's elements in memory, as a bijection (or an injection, with
// padding) from multi-index to linear element index.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::tensor {

// Tile sizes, minor-most last; kCombine merges a dimension with the next one ("*" in the text).
struct Tile {
  static constexpr int64_t kCombine = INT64_MIN;
  std::vector<int64_t> dims;
  bool operator==(const Tile&) const = default;
};

struct Layout {
  std::vector<int64_t> minor_to_major;  // dimension numbers, fastest varying first
  std::vector<Tile> tiles;
  int64_t element_size_bits = 0;           // 0: the type's own width; E(n) in the text
  int64_t memory_space = 0;                // S(n)
  std::vector<int64_t> padded_dimensions;  // empty: none
  std::string rest;                        // other parts (L, #, *, SC, P, M, D), kept as written

  static Layout row_major(int64_t rank);
  bool is_row_major() const;  // no tiles, no padding, descending minor_to_major
  bool operator==(const Layout&) const = default;
};

// "{1,0:T(8,128)S(1)}"; the braces are part of the text. Padded dimensions, which XLA's text no
// longer has, are PD(3,5) at the end.
std::string to_string(const Layout& layout);
// The inverse; spaces are skipped. Does not check against an array: see check_layout.
Result<Layout> parse_layout(std::string_view text);
// Whether the layout is valid for an array of extents `dims` (unknown extents: -1): its order is a
// permutation, tiles and padding are positive and large enough, and nothing overflows.
Status check_layout(const Layout& layout, std::span<const int64_t> dims);

// Linear element index of `index` in an array of extents `dims`; the inverse (empty if `linear` is
// padding); and the number of elements including padding. Preconditions: check_layout, index inside
// dims. With tiles: slow, meant for copying and tests.
int64_t linear_index(const Layout& layout, std::span<const int64_t> dims,
                     std::span<const int64_t> index);
std::vector<int64_t> multi_index(const Layout& layout, std::span<const int64_t> dims,
                                 int64_t linear);
int64_t padded_elems(const Layout& layout, std::span<const int64_t> dims);

}  // namespace heddle::tensor
