// The passes of this folder: one function each, in a file of the same name, and a table of them.
// Each file documents its pass.
#pragma once

#include <span>

#include "pass/pass.h"

namespace heddle::precision {

using pass::PassContext;

#define HEDDLE_PASS(name, required, rounds, summary) \
  Result<bool> name(hlo::Module& module, const PassContext& context);
#include "precision/passes.def"

std::span<const pass::PassInfo> passes();

}  // namespace heddle::precision
