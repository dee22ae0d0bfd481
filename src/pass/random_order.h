// Random modules for tests of order and of cycles, deterministic by seed. Nearly all values have
// one shape, [extent, extent] of f32, so that all that may share a kernel could; between them stand
// sorts, top-ks and products, up to four in a row, which share one with nobody; control edges lead
// from any instruction to a later one. Numbers stay within [-2, 2] if the arguments are in [-1, 1],
// and no change of rounding makes them jump.
#pragma once

#include <cstdint>
#include <memory>

#include "hlo/module.h"

namespace heddle::pass {

// With 8 to 60 operators and up to four control edges.
std::unique_ptr<hlo::Module> random_order_module(uint64_t seed, int64_t extent);

}  // namespace heddle::pass
