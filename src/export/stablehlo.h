// hlo::Module as StableHLO text, which JAX, MLIR and import/stablehlo.h read: operations in the
// generic form, of the dialects stablehlo, chlo (for those that StableHLO lacks: erf, asin, …) and
// func.
//
// Tuples are flattened: a tuple parameter or result becomes several. Called computations and
// fusions become private functions, those of reductions and the like regions. Layouts are left out:
// they mean nothing for values. Errors (user): operators without an equivalent, by name; sizes that
// are not numbers.
#pragma once

#include <string>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::exports {

Result<std::string> to_stablehlo(const hlo::Module& module);

}  // namespace heddle::exports
