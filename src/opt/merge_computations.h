// Merges equal computations (cse.cc).
#pragma once

#include "hlo/module.h"
#include "pass/pass.h"

namespace heddle::opt {

bool merge_computations(hlo::Module& module, const pass::PassContext& context);

}  // namespace heddle::opt
