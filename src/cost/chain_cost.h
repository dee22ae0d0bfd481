// The gain of a chain: the criterion of BOLT. The values between its products are neither written
// nor read again; in return every block of rows reads all weights, and only rows are divided into
// tasks. Times are of all cores of the target.
#pragma once

#include "stage/placed.h"
#include "target/target.h"

namespace heddle::cost {

// The time of a kernel of the GEMM family (one product, or a chain), or of rows, which may join a
// chain.
double predicted_ns(const stage::PlacedFusion& placed, const target::Target& target);

// The time in which all cores read or write this many bytes, from the cache in which they fit.
double moved_ns(double bytes, const target::Target& target);

}  // namespace heddle::cost
