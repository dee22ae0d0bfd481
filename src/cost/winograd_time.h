// Predicted time of Winograd's algorithm.
#pragma once

#include "stage/winograd_shape.h"
#include "target/target.h"

namespace heddle::cost {

struct WinogradTiles {
  int64_t lines, across;  // of an image
};
WinogradTiles tiles_of(const stage::WinogradShape& shape, int m);
// Whether the transformed filter stays in the second cache.
bool stays_in_second_cache(const stage::Winograd& winograd, const stage::WinogradShape& shape,
                           const target::Target& target);

// Predicted cycles of all cores together; and of the direct form at its usual rate.
double winograd_cycles(const stage::Winograd& winograd, const stage::WinogradShape& shape,
                       const target::Target& target);
double direct_cycles(const stage::WinogradShape& shape, const target::Target& target);

}  // namespace heddle::cost
