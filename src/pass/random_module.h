// Random modules for differential tests: valid, deterministic by seed, small, and well-conditioned,
// so that the values before and after a pass (or from interp and from compiled code) can be
// compared with a tight tolerance.
//
//  - Arguments must be in [-1, 1] (interp::random_arguments); then every float stays finite and
//    below about 1e4 in magnitude.
//  - Discontinuous operators (comparisons, rounding, index arithmetic) are only applied to values
//    that no legal change of rounding can affect: parameters, integers, iotas, and these after data
//    movement.
//  - No array has more than `max_elems` elements, and no dot more than 64 times that many products.
#pragma once

#include <cstdint>
#include <memory>

#include "hlo/module.h"

namespace heddle::pass {

struct RandomModuleOptions {
  int steps = 20;            // number of patterns; each has one to ten instructions
  int64_t max_elems = 4096;  // of an array
  bool narrow = true;        // also f16 and bf16
  bool wide = true;          // also f64
  bool contractions = true;  // dots
  bool reductions = true;
  bool indexing = true;  // gather, dynamic-slice, dynamic-update-slice
  bool control = false;  // calls, conditionals, while loops
  bool foldable = true;  // constants, neutral operands, needless movement: work for simplifiers
};

std::unique_ptr<hlo::Module> random_module(uint64_t seed, const RandomModuleOptions& options = {});

}  // namespace heddle::pass
