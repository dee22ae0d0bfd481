// hlo::Module as StableHLO text, which JAX, MLIR and import/stablehlo.h read: operations in the
// generic form, of the dialects stablehlo, chlo (where StableHLO has none: erf, asin, …) and func.
//
// Tuples are taken apart: a parameter or result that is one is several. Called computations and
// fusions become private functions, those of reductions and the like regions. Layouts are left out:
// they mean nothing for values. Errors (user): operators without an equal, by name; sizes that are
// not numbers.
#pragma once

#include <string>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::exports {

Result<std::string> to_stablehlo(const hlo::Module& module);

}  // namespace heddle::exports
