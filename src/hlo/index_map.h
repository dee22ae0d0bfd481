// How the dimensions of an operand relate to those of the result, for every operator, in one place.
// All code that follows a dimension, a layout, rows or an element uses this; no other code lists
// operators for that purpose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

// Kind of a link between dimensions: which elements x of the operand an element y of the result
// needs.
enum class DimKind : uint8_t {
  same,       // x = y; equal extents
  regrouped,  // split and merged: both sides hold the same elements, in row-major order
  strided,    // x = (y * stride + offset) / divisor
  located,    // x = y + position, which is known at run time; x = position where `to` is empty
  placed,     // x = y - position
  overlaid,   // x = y, except in a slice at a run-time position, which another operand overwrites
  window,     // x = y * window.stride + … for every element of the window
  reduced,    // every x
  opaque,     // unknown: possibly any x
};

struct DimLink {
  DimKind kind = DimKind::same;
  // Half-open ranges of dimensions, one of each unless regrouped. `to` may be empty.
  int64_t from = 0, from_end = 0, to = 0, to_end = 0;
  // strided. is_partial: some y have no x, because the quotient has a remainder or is out of range;
  // another operand gives those elements.
  int64_t stride = 1, offset = 0, divisor = 1;
  bool is_partial = false;
  // located, placed: the operand that holds the position, as its element number `other_dim` along
  // its unlinked dimension (-1: it has no such dimension; no operand: the position is 0). reduced:
  // the same dimension of the operand that is reduced in lockstep. window: the operand that holds
  // the weights. -1: none.
  int64_t other = -1, other_dim = -1;
  int64_t limit = 0;  // located, placed: positions are in [0, limit]
  WindowDim window;
};

// The operand is broadcast along dimensions of the result that have no link. Dimensions of the
// operand that have no link have an extent of 1.
struct IndexMap {
  bool is_opaque = false;  // an element may need all of the operand; no links
  std::vector<DimLink> links;

  const DimLink* of_operand(int64_t d) const;  // the link that has the dimension, or null
  const DimLink* of_result(int64_t d) const;
};

// For operand k. Operators with several results: the same for each. Extents are taken as written:
// the bound where a dimension is bounded.
IndexMap index_map(const Instr& instr, size_t k);
// "d0=r1 d1=(r0*2+3)/1 d2,d3~r2 d4=r3+p1.0<=7 d5 reduced"; "opaque".
std::string to_string(const IndexMap& map);

// Splits a reshape from `from` to `to` extents into the finest pieces that keep their order:
// dimensions [from_begin, from_end) hold the same elements as [to_begin, to_end). Dimensions of
// extent 1 are pieces of their own, with the other side empty or another 1. Precondition: equal
// products, not zero.
struct ReshapePiece {
  int64_t from_begin, from_end, to_begin, to_end;
};
std::vector<ReshapePiece> reshape_pieces(const Ints& from, const Ints& to);

}  // namespace heddle::hlo
