// Bounded symbols made right: a module whose dynamic dimensions are at their bound computes, in the
// first n elements of each of them, what the module of exact shapes would, whatever stands behind.
#pragma once

#include <vector>

#include "base/error.h"
#include "hlo/dim_classes.h"
#include "hlo/module.h"

namespace heddle::opt {

// The entry gets a parameter s32[] for the extent of each symbol (Symbol::extent is set), and what
// is reduced or contracted over a dynamic dimension is masked there with the neutral value, as
// early as the value is made, so that the mask is part of the operator that makes it. Values that
// are neutral in the padding already (exp(x - max x) behind a masked maximum) stay. The symbols are
// kept in the module's header. Errors: what hlo::DimClasses::assign refuses; a reduction without a
// neutral value.
Status mask_padding(hlo::Module* module, std::vector<hlo::Symbol> symbols);

}  // namespace heddle::opt
