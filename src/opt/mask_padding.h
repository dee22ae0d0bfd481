// mask_padding with symbols some of which follow from others, as where an input is one longer than
// another one. Behind it Module::symbols are those of the table, and more where the extents of
// joined arrays follow from them; the entry has a parameter s32[] for each, in that order.
#pragma once

#include "base/error.h"
#include "hlo/dim_classes.h"

namespace heddle::opt {

// Errors: what hlo::DimClasses::derive refuses; a reduction without a neutral value.
Status mask_bounded(hlo::Module& module, hlo::SymbolTable table);

}  // namespace heddle::opt
