// The time that an epilogue of a product loses if rows of its arrays share sets of the first cache.
#pragma once

#include "stage/placed.h"

namespace heddle::cost {

// Nanoseconds of one core, at least. A tile's epilogue reads and writes short pieces of many rows;
// if their stride is a multiple of the page (or of a large part of it), their lines map to few sets
// and are evicted before they are used, and stores hold up loads with the same low address bits. 0
// for placements that are no product with an epilogue.
double shared_sets_ns(const stage::PlacedFusion& placed, const target::Target& target);

}  // namespace heddle::cost
