// The passes of this folder: a function each, in a file of its name, and the table of them all.
// What a pass does is said in its file.
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
