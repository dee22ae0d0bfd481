// How much of a schedule moves across its lanes: neighbouring lanes that are no neighbours in
// memory. The explorer asks whether two operators are better off apart.
#pragma once

#include "stage/placed.h"

namespace heddle::cost {

// Elements that rows read from inputs or write to outputs with a stride from lane to lane; arrays
// that a first cache holds easily do not count, nor does what a family or a turned square (turn.h)
// moves. 0 for a refused placement.
int64_t strided_elems(const stage::PlacedFusion& placed);

// Columns of a product's last vector from which on they are turned.
inline constexpr int64_t kLeastTurned = 4;
// Elements that a product's kernel stores one by one: its results run on along neither the columns
// of its tiles nor, in whole vectors of them, their rows (stitch/gemm_turned.cc). 0 for others.
int64_t scattered_stores(const stage::PlacedFusion& placed);

}  // namespace heddle::cost
