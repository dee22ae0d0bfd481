// The memory traffic of a kernel, by phase: the price that fusion compares.
#pragma once

#include "stage/placed.h"
#include "target/target.h"

namespace heddle::cost {

// Bytes read and written by all phases: every phase reads each array that it needs once.
double moved_bytes(const stage::PlacedFusion& placed);
// The time of these bytes at the rate of memory (or of the fastest cache that holds them easily),
// and of one launch per phase. Arithmetic is not counted.
double traffic_ns(const stage::PlacedFusion& placed, const target::Target& target);

}  // namespace heddle::cost
