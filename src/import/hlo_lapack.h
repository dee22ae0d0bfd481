// Private to import: LAPACK's custom calls, which JAX writes into HLO for CPUs, as operators.
#pragma once

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::import {

// lapack_?potrf_ffi becomes cholesky, with the status that it returns besides the factor;
// lapack_?trsm_ffi becomes triangular-solve. Other calls stay: HLO has no operator for them.
Status replace_lapack_calls(hlo::Module& module);

}  // namespace heddle::import
