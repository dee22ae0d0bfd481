// Applies a plan of mixed precision to a module before fusion.
#pragma once

#include "hlo/module.h"
#include "precision/mixed_plan.h"

namespace heddle::precision {

struct MixedCounts {
  int values = 0, products = 0;  // with low precision
  int casts = 0;                 // conversions added
};

// Values of the plan are rounded at their producers (a conversion and back), operands of its
// products are converted. Entries whose name matches no instruction of the module are ignored.
MixedCounts apply_mixed(const MixedPlan& plan, hlo::Module* module);

}  // namespace heddle::precision
