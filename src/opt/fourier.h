// Discrete Fourier transforms as products of real matrices.
#pragma once

#include "hlo/builder.h"

namespace heddle::opt {

// A complex array as two real ones; `im` is null where it is zero.
struct Parts {
  hlo::Instr* re = nullptr;
  hlo::Instr* im = nullptr;
};

// Whether transformed() takes this fft: static, of lengths whose factors are small.
bool can_transform(const hlo::Instr& fft);

// What `fft` makes of `z`; of an inverse transform to real numbers `im` is null.
Parts transformed(const hlo::Instr* fft, Parts z, hlo::Builder& b);

}  // namespace heddle::opt
