// A plan of mixed precision, written into a module that is not fused yet.
#pragma once

#include "hlo/module.h"
#include "precision/mixed_plan.h"

namespace heddle::precision {

struct MixedCounts {
  int values = 0, products = 0;  // that are low
  int casts = 0;                 // conversions that were written
};

// Values of the plan are rounded where they are made (a conversion and back), operands of its
// products are converted. What fusion named otherwise than the module does is left alone.
MixedCounts apply_mixed(const MixedPlan& plan, hlo::Module* module);

}  // namespace heddle::precision
