// For tests: a fusion goes the whole way to a kernel, which the kernel interpreter runs and checks
// (bounds, unwritten reads, races); results are compared with the reference interpreter.
#pragma once

#include <string>
#include <vector>

#include "hlo/join.h"
#include "hlo/module.h"
#include "kernel/interp.h"
#include "kernel/kernel.h"
#include "schedule/place.h"
#include "target/target.h"
#include "tensor/literal.h"

namespace heddle::compiler {

struct FusionCheck {
  stage::PlacedFusion placed;
  kernel::Kernel kernel;
  kernel::InterpReport report;
  std::string text;           // schedule and kernel
  std::vector<int> in_place;  // as stitched; small results are also checked in place
  std::vector<int64_t> workspace_bytes;
  std::string failure;  // empty: equal and clean
};

// The entry of `module` as one fusion, or as a `join` of the fusions in it (`placed` is empty then;
// no loop). `reduction_length` as in tensor::derived_tolerance; `streamed` as in stitch(), of one
// fusion.
FusionCheck check_fusion(const hlo::Module& module, const target::Target& target, uint64_t seed,
                         int64_t reduction_length, const std::vector<bool>& streamed = {},
                         hlo::Join join = hlo::Join::none);

}  // namespace heddle::compiler
