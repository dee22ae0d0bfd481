// How the modules of a StableHLO file fare in `heddle conform stablehlo`.
#pragma once

#include <functional>
#include <string>

#include "conform_module.h"

namespace heddle::tools {

// "pass": all assertions hold; "runs": it has none and runs; "mismatch", "error" (it compiles and
// does not run); "unparsable", "refused" (not supported, or wrong on purpose), "too big".
// "disabled": the file's own suite leaves it out (RUN-DISABLED).
struct StablehloOutcome {
  std::string module, outcome, reason;
};

// Calls `begin` with a module's name before the work on it, and `end` behind it. The values that a
// test starts from (the results of @inputs, else the constants of @main) are made inputs of the
// program, so that compiled code computes with them.
void conform_stablehlo(const std::string& path, const ConformChoices& choices,
                       const std::function<void(const std::string& module)>& begin,
                       const std::function<void(const StablehloOutcome&)>& end);

}  // namespace heddle::tools
