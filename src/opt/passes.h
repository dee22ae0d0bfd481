// The passes of this folder: one function each, `Result<bool> cse(hlo::Module&, const
// PassContext&)`, in a file of the same name, which documents it; and the table of all of them.
#pragma once

#include <span>

#include "pass/pass.h"

namespace heddle::opt {

using pass::PassContext;

#define HEDDLE_PASS(name, required, rounds, summary) \
  Result<bool> name(hlo::Module& module, const PassContext& context);
#include "opt/passes.def"

std::span<const pass::PassInfo> passes();

}  // namespace heddle::opt
