// Private to host_native.cc: Fourier transforms.
#pragma once

#include <optional>

#include "hlo/module.h"
#include "runtime/host.h"

namespace heddle::api {

// As native_call() for fft of c64, c128, f32 and f64, with the rounding of pocketfft. The operand
// must be a dense array.
std::optional<runtime::HostCallable> native_fft(const hlo::Instr& instr);

}  // namespace heddle::api
