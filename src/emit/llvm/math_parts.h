// The functions of math_*.cc, one a line; math.cc chooses among them. Bounds: docs/numerics.md.
#pragma once

#include "emit/llvm/math_kit.h"

namespace heddle::emit {

// For float and double alike.
llvm::Value* math_exp(const MathKit& k, llvm::Value* x);
// exp(x + low) for |low| far below an ulp of x.
llvm::Value* math_exp(const MathKit& k, llvm::Value* x, llvm::Value* low);
llvm::Value* math_expm1(const MathKit& k, llvm::Value* x);
llvm::Value* math_log(const MathKit& k, llvm::Value* x);
llvm::Value* math_log1p(const MathKit& k, llvm::Value* x);
llvm::Value* math_tanh(const MathKit& k, llvm::Value* x);
llvm::Value* math_logistic(const MathKit& k, llvm::Value* x);
llvm::Value* math_erf(const MathKit& k, llvm::Value* x);
llvm::Value* math_rsqrt(const MathKit& k, llvm::Value* x);

// For float. exp_fast wants x <= 0 (more is right up to overflow, too); the others take all.
llvm::Value* math_exp_fast(const MathKit& k, llvm::Value* x);
llvm::Value* math_tanh_fast(const MathKit& k, llvm::Value* x);
llvm::Value* math_erf_fast(const MathKit& k, llvm::Value* x);
llvm::Value* math_logistic_fast(const MathKit& k, llvm::Value* x);

// For double; float goes through them. They may make blocks: only in a function of their own.
llvm::Value* math_cbrt(const MathKit& k, llvm::Value* x);
llvm::Value* math_sin(const MathKit& k, llvm::Value* x);
llvm::Value* math_cos(const MathKit& k, llvm::Value* x);
llvm::Value* math_tan(const MathKit& k, llvm::Value* x);
llvm::Value* math_asin(const MathKit& k, llvm::Value* x);
llvm::Value* math_acos(const MathKit& k, llvm::Value* x);
llvm::Value* math_atan2(const MathKit& k, llvm::Value* y, llvm::Value* x);
llvm::Value* math_sinh(const MathKit& k, llvm::Value* x);
llvm::Value* math_cosh(const MathKit& k, llvm::Value* x);
llvm::Value* math_asinh(const MathKit& k, llvm::Value* x);
llvm::Value* math_acosh(const MathKit& k, llvm::Value* x);
llvm::Value* math_atanh(const MathKit& k, llvm::Value* x);
llvm::Value* math_pow(const MathKit& k, llvm::Value* x, llvm::Value* y);

}  // namespace heddle::emit
