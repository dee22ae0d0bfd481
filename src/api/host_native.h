// Host calls that need no interpreter: sorting by one key, scatters of numbers, Fourier transforms,
// Cholesky's factorisation and triangular systems.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "runtime/host.h"

namespace heddle::api {

// The same results as the interpreter's, bit for bit, for a module whose entry is one operator on
// its parameters, in their order:
// - sort by a comparison of one operand's numbers, or in the total order of floats, of f16 and bf16
//   too, where zeros may be one and NaNs may be one, as JAX writes it;
// - scatter of one operand without batching dimensions, by replacement, sum, product, maximum or
//   minimum;
// - the parts of complex numbers, and complex numbers of parts.
// f32, f64, s32 and s64; what a sort only moves, any type. And, rounded otherwise than by the
// interpreter, which computes in f64:
// - fft of f32, f64, c64 and c128; cholesky and triangular-solve of f32 and f64.
// None: another operator. May be called by
// several threads at once.
std::optional<runtime::HostCallable> native_call(const hlo::Module& module);

}  // namespace heddle::api
