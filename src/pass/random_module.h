// Random modules for differential tests: valid, deterministic by seed, small, and well-conditioned,
// so that the values before and after a pass (or from interp and from compiled code) can be
// compared with a tight tolerance.
//
//  - Arguments are meant to lie in [-1, 1] (interp::random_arguments); then every float stays
//    finite and below 1e4 or so in magnitude.
//  - What jumps (comparisons, rounding, index arithmetic) is only done to values that no legal
//    change of rounding can touch: parameters, integers, iotas and what moves them about.
//  - No array has more than `max_elems` elements, and no dot more than 64 times that many products.
#pragma once

#include <cstdint>
#include <memory>

#include "hlo/module.h"

namespace heddle::pass {

struct RandomModuleOptions {
  int steps = 20;            // patterns that are put together; each is one to ten instructions
  int64_t max_elems = 4096;  // of an array
  bool narrow = true;        // also f16 and bf16
  bool wide = true;          // also f64
  bool contractions = true;  // dots
  bool reductions = true;
  bool indexing = true;  // gather, dynamic-slice, dynamic-update-slice
  bool control = false;  // calls, conditionals, while loops
  bool foldable = true;  // constants, neutral operands, needless movement: food for simplifiers
};

std::unique_ptr<hlo::Module> random_module(uint64_t seed, const RandomModuleOptions& options = {});

}  // namespace heddle::pass
