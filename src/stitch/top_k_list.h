// Private to stitch: the list of a top-k (top_k.cc, top_k_lanes.cc).
#pragma once

#include "stitch/row_emitter.h"

namespace heddle::stitch {

struct RowEmitter::TopK {
  int64_t k = 0;
  bool largest = true;
  Type type = Type::f32, key = Type::s32;
  int list = -1;                // digit
  int reduced = -1;             // digit; -1: a single element
  int64_t elems = 1;            // of the reduced digits
  int64_t first = 0, last = 0;  // of the list: the part that is stored
  BufferId keys, places;
  BufferId turned;  // keys of the rows in lanes, element by element; invalid: not held

  // The smallest key there is.
  uint64_t least() const { return uint64_t{1} << (tensor::type_bits(key) - 1); }
};

}  // namespace heddle::stitch
