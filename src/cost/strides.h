// How much data of a schedule moves across its lanes: neighbouring lanes are not adjacent in
// memory. The explorer uses it to tell whether two operators are better separate.
#pragma once

#include "stage/placed.h"

namespace heddle::cost {

// Elements that rows read from inputs or write to outputs with a stride from lane to lane, without
// arrays that easily fit a first cache, and without accesses of a family or of a transposed square
// (turn.h). 0 for a refused placement.
int64_t strided_elems(const stage::PlacedFusion& placed);

// The least number of columns of a product's last vector that are transposed.
inline constexpr int64_t kLeastTurned = 4;
// Elements that a product's kernel stores one by one: its results are contiguous neither along the
// columns of its tiles nor, in whole vectors, along their rows (stitch/gemm_turned.cc). 0 for other
// kernels.
int64_t scattered_stores(const stage::PlacedFusion& placed);

}  // namespace heddle::cost
