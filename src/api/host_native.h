// Host calls without the interpreter: sorting by one key, scatters of numbers, Fourier transforms,
// Cholesky factorisation and triangular systems.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "runtime/host.h"

namespace heddle::api {

// Bit-identical to the interpreter, for a module whose entry is one operator on its parameters, in
// their order:
// - sort by a comparison of one operand's numbers, or in the total order of floats, including f16
//   and bf16, where zeros may be equal and NaNs may be equal, as JAX writes it;
// - scatter of one operand without batching dimensions, by replacement, sum, product, maximum or
//   minimum;
// - the parts of complex numbers, and complex numbers from parts.
// Types: f32, f64, s32 and s64; any type for operands that a sort only permutes. With other
// rounding than the interpreter, which computes in f64:
// - fft of f32, f64, c64 and c128; cholesky and triangular-solve of f32 and f64.
// No value: another operator. Several threads may call it at the same time.
std::optional<runtime::HostCallable> native_call(const hlo::Module& module);

}  // namespace heddle::api
