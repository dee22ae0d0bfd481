// What an epilogue of a product loses where rows of its arrays share sets of the first cache.
#pragma once

#include "stage/placed.h"

namespace heddle::cost {

// Nanoseconds of one core, at least. A tile's epilogue reads and writes short pieces of many rows;
// where these lie a multiple of the page apart (or a large part of it) their lines fall into few
// sets, are thrown out before they are used, and stores hold up loads with the same low bits. 0 for
// placements that are no product with something behind it.
double shared_sets_ns(const stage::PlacedFusion& placed, const target::Target& target);

}  // namespace heddle::cost
