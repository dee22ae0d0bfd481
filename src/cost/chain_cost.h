// What a chain saves: the gate of BOLT. The values between its products are neither
// written nor read again; in return every block of rows passes by all weights, and rows alone make
// tasks. Times are of all cores of the target.
#pragma once

#include "stage/placed.h"
#include "target/target.h"

namespace heddle::cost {

// A kernel of the GEMM family: one product, or a chain; or of rows, which may join a chain.
double predicted_ns(const stage::PlacedFusion& placed, const target::Target& target);

// Bytes that are read or written, by all cores, as they lie where so many fit.
double moved_ns(double bytes, const target::Target& target);

}  // namespace heddle::cost
