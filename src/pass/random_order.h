// Random modules for tests of order and of cycles, deterministic by seed. Nearly all values have
// one shape, [extent, extent] of f32, so that all fusible operators could share a kernel; between
// them are sorts, top-ks and products, up to four in a row, which share a kernel with no other
// operator; control edges lead from any instruction to a later one. Values stay within [-2, 2] if
// the arguments are in [-1, 1], and are continuous under changes of rounding.
#pragma once

#include <cstdint>
#include <memory>

#include "hlo/module.h"

namespace heddle::pass {

// The module has 8 to 60 operators and up to four control edges.
std::unique_ptr<hlo::Module> random_order_module(uint64_t seed, int64_t extent);

}  // namespace heddle::pass
