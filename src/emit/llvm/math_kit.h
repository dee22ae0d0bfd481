// For math_*.cc: arithmetic on values of one shape (float, double, or a vector of either), so that
// a function reads as its formula. Works on every target; `mad` contracts only where fma is cheap.
#pragma once

#include <span>
#include <utility>

#include "emit/llvm/math_context.h"
#include "emit/llvm/types.h"

namespace heddle::emit {

class MathKit {
 public:
  using Value = llvm::Value;

  // For values of the type of `like`.
  MathKit(MathContext& context, Value* like);

  bool is_double() const { return bits_ == 64; }
  llvm::Type* type() const { return type_; }
  MathContext& context() const { return context_; }
  llvm::IRBuilder<>& builder() const { return b_; }

  Value* number(double value) const { return float_constant(type_, value); }
  Value* add(Value* a, Value* b) const { return b_.CreateFAdd(a, b); }
  Value* sub(Value* a, Value* b) const { return b_.CreateFSub(a, b); }
  Value* mul(Value* a, Value* b) const { return b_.CreateFMul(a, b); }
  Value* div(Value* a, Value* b) const { return b_.CreateFDiv(a, b); }
  Value* add(Value* a, double b) const { return add(a, number(b)); }
  Value* mul(Value* a, double b) const { return mul(a, number(b)); }
  Value* neg(Value* a) const { return b_.CreateFNeg(a); }
  Value* mad(Value* a, Value* b, Value* c) const;  // a * b + c, rounded once or twice
  Value* mad(Value* a, double b, Value* c) const { return mad(a, number(b), c); }
  Value* abs(Value* a) const;
  Value* sqrt(Value* a) const;
  Value* copysign(Value* magnitude, Value* sign) const;

  Value* less(Value* a, double b) const { return b_.CreateFCmpOLT(a, number(b)); }
  Value* greater(Value* a, double b) const { return b_.CreateFCmpOGT(a, number(b)); }
  Value* equal(Value* a, double b) const { return b_.CreateFCmpOEQ(a, number(b)); }
  Value* is_nan(Value* a) const { return b_.CreateFCmpUNO(a, a); }
  Value* select(Value* c, Value* a, Value* b) const { return b_.CreateSelect(c, a, b); }
  Value* both(Value* a, Value* b) const { return b_.CreateAnd(a, b); }
  // Limits that pass NaN through.
  Value* at_most(Value* a, double limit) const;
  Value* at_least(Value* a, double limit) const;

  // sum c[i] x^i; scheme of Horner.
  Value* poly(Value* x, std::span<const double> c) const;

  // The integers of the same width.
  Value* bits(Value* a) const { return to_bits(b_, a); }
  Value* unbits(Value* a) const { return from_bits(b_, a, type_); }
  Value* integer(uint64_t n) const { return int_constant(int_type_, n); }

  // A number rounded to the nearest integer, as a float and as an integer; |a| below 2^21 (2^50).
  // For any other value both are arbitrary.
  std::pair<Value*, Value*> nearest(Value* a) const;
  Value* power_of_two(Value* n) const;  // 2^n, n an integer in the range of normal exponents
  // a * 2^n, rounded once, |n| up to twice the range of exponents.
  Value* scale(Value* a, Value* n) const;

  // a * b exactly: the rounded product and its rounding error. (Overflow aside.)
  std::pair<Value*, Value*> product(Value* a, Value* b) const;
  // a + b exactly, |a| >= |b| or a = 0.
  std::pair<Value*, Value*> quick_sum(Value* a, Value* b) const;
  std::pair<Value*, Value*> sum(Value* a, Value* b) const;  // in any order

 private:
  std::pair<Value*, Value*> split(Value* a) const;

  MathContext& context_;
  llvm::IRBuilder<>& b_;
  llvm::Type *type_, *int_type_;
  int bits_;
};

}  // namespace heddle::emit
