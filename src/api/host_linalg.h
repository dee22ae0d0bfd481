// Private to host_native.cc: factorisations and triangular systems.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "runtime/host.h"

namespace heddle::api {

// As native_call() for cholesky and triangular-solve of f32 and f64, computed in that type (the
// interpreter adds in f64). All arrays must be dense.
std::optional<runtime::HostCallable> native_cholesky(const hlo::Instr& instr);
std::optional<runtime::HostCallable> native_triangular_solve(const hlo::Instr& instr);

}  // namespace heddle::api
