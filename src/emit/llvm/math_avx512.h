// AVX-512 instructions for exponentials and quotients, on vectors of any number of registers.
#pragma once

#include "emit/llvm/math_kit.h"

namespace heddle::emit {

// Whether the target has them for values of this shape: whole vectors of 128, 256 or 512 bits.
bool has_avx512_exponent(const MathKit& k);
// a * 2^floor(n), rounded once; right for all a and n, infinities and NaN among them.
llvm::Value* avx512_scale(const MathKit& k, llvm::Value* a, llvm::Value* n);
// The same, and 0 where `keep` (a mask) is off. For float.
llvm::Value* avx512_scale_where(const MathKit& k, llvm::Value* keep, llvm::Value* a,
                                llvm::Value* n);
// x - floor(x). For float.
llvm::Value* avx512_fraction(const MathKit& k, llvm::Value* x);

// 1 / x within 2^-14 of itself, for normal x below 2^126 in magnitude. For float.
llvm::Value* avx512_reciprocal_14(const MathKit& k, llvm::Value* x);
// 1 / x within an ulp, for normal x below 2^126 in magnitude. For float.
llvm::Value* avx512_reciprocal(const MathKit& k, llvm::Value* x);

}  // namespace heddle::emit
