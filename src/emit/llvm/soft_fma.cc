#include "emit/llvm/soft_fma.h"

#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "emit/llvm/math_shared.h"

namespace heddle::emit {
namespace {

using llvm::Value;

// The product is exact in double; the sum is made exact but for its last bit, which is forced odd
// where anything was lost, so that rounding to float is the only rounding.
Value* float_fma(llvm::IRBuilder<>& b, Value* x, Value* y, Value* z) {
  llvm::Type* f64 = like(b.getDoubleTy(), x);
  Value* p = b.CreateFMul(b.CreateFPExt(x, f64), b.CreateFPExt(y, f64));
  Value* c = b.CreateFPExt(z, f64);
  Value* sum = b.CreateFAdd(p, c);
  Value* c_part = b.CreateFSub(sum, p);
  Value* p_part = b.CreateFSub(sum, c_part);
  Value* error = b.CreateFAdd(b.CreateFSub(p, p_part), b.CreateFSub(c, c_part));
  Value* bits = to_bits(b, sum);
  auto number = [&](uint64_t n) { return int_constant(bits->getType(), n); };
  Value* even = b.CreateICmpEQ(b.CreateAnd(bits, number(1)), number(0));
  Value* lost = b.CreateFCmpONE(error, float_constant(f64, 0));
  Value* opposite =
      b.CreateICmpSLT(b.CreateXor(to_bits(b, error), bits), number(0));  // the sum is too large
  Value* odd = b.CreateAdd(bits, b.CreateSelect(opposite, number(~uint64_t{0}), number(1)));
  Value* exact = b.CreateSelect(b.CreateAnd(even, lost), odd, bits);
  return b.CreateFPTrunc(from_bits(b, exact, f64), x->getType());
}

// One double: the 106 bits of the product and the addend are aligned in 128 bits, with the bits
// shifted out kept as one sticky bit, and the sum is rounded by hand.
class DoubleFma {
 public:
  explicit DoubleFma(const MathKit& k) : k_(k), b_(k.builder()) {}

  Value* make(Value* x, Value* y, Value* z) {
    Number a = unpack(x), b = unpack(y), c = unpack(z);
    Value* product = b_.CreateShl(b_.CreateMul(wide(a.mantissa), wide(b.mantissa)), big(kGuard));
    Value* unit = b_.CreateSub(b_.CreateAdd(a.exponent, b.exponent), word(kGuard));
    Value* distance = b_.CreateSub(c.exponent, unit);
    // The addend's place is bit `up`; where that is too high the product moves down instead.
    Value* up = smaller(b_, larger(b_, distance, word(0)), word(kHighest));
    Value* addend = b_.CreateShl(wide(c.mantissa), wide(up));
    addend = shift_sticky(addend, larger(b_, b_.CreateNeg(distance), word(0)));
    Value* down = larger(b_, b_.CreateSub(distance, word(kHighest)), word(0));
    product = shift_sticky(product, down);
    unit = b_.CreateAdd(unit, down);

    Value* product_sign = b_.CreateXor(a.negative, b.negative);
    Value* opposite = b_.CreateXor(product_sign, c.negative);
    Value* less = b_.CreateICmpULT(product, addend);
    Value* difference =
        b_.CreateSelect(less, b_.CreateSub(addend, product), b_.CreateSub(product, addend));
    Value* magnitude = b_.CreateSelect(opposite, difference, b_.CreateAdd(product, addend));
    Value* negative = b_.CreateSelect(b_.CreateAnd(opposite, less), c.negative, product_sign);
    Value* zero = b_.CreateICmpEQ(magnitude, big(0));
    negative = b_.CreateAnd(negative, b_.CreateNot(zero));
    Value* result = round(magnitude, unit, negative);

    // Zeros, infinities and NaN need no exact arithmetic.
    auto finite = [&](Value* v) {
      return k_.less(k_.abs(v), std::numeric_limits<double>::infinity());
    };
    Value* plain = k_.mul(x, y);
    Value* zero_factor = b_.CreateOr(k_.equal(x, 0), k_.equal(y, 0));
    Value* all_finite = k_.both(k_.both(finite(x), finite(y)), finite(z));
    Value* simple = b_.CreateOr(zero_factor, b_.CreateNot(all_finite));
    result = k_.select(k_.equal(z, 0), plain, result);
    // An infinite product of finite factors must not meet an infinite addend.
    Value* infinite_addend = k_.both(k_.both(finite(x), finite(y)), b_.CreateNot(finite(z)));
    Value* sum = k_.select(infinite_addend, z, k_.add(plain, z));
    return k_.select(simple, sum, result);
  }

 private:
  struct Number {
    Value *mantissa, *exponent;  // mantissa * 2^exponent, the leading bit at 52
    Value* negative;
  };
  // The product's last bit is at kGuard; an addend at kHighest reaches bit 124.
  static constexpr uint64_t kGuard = 19, kHighest = 72;

  Value* word(uint64_t n) { return b_.getInt64(n); }
  Value* big(uint64_t n) { return llvm::ConstantInt::get(b_.getInt128Ty(), n); }
  Value* wide(Value* v) { return b_.CreateZExt(v, b_.getInt128Ty()); }

  Number unpack(Value* x) {
    Value* bits = k_.bits(x);
    Value* field = b_.CreateAnd(b_.CreateLShr(bits, 52), word(0x7ff));
    Value* low = b_.CreateAnd(bits, word((uint64_t{1} << 52) - 1));
    Value* normal = b_.CreateICmpNE(field, word(0));
    Value* mantissa = b_.CreateSelect(normal, b_.CreateOr(low, word(uint64_t{1} << 52)), low);
    // A subnormal's leading bit moves up to bit 52.
    Value* zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, mantissa, b_.getFalse());
    Value* shift = smaller(b_, b_.CreateSub(zeros, word(11)), word(53));
    Value* exponent = b_.CreateSub(b_.CreateSelect(normal, field, word(1)), word(1075));
    return {b_.CreateShl(mantissa, shift), b_.CreateSub(exponent, shift),
            b_.CreateICmpSLT(bits, word(0))};
  }

  // v >> n, with the last bit set if any set bit was shifted out.
  Value* shift_sticky(Value* v, Value* n) {
    n = wide(smaller(b_, n, word(127)));
    Value* shifted = b_.CreateLShr(v, n);
    Value* lost = b_.CreateICmpNE(b_.CreateShl(shifted, n), v);
    return b_.CreateOr(shifted, wide(lost));
  }

  // magnitude * 2^unit, to nearest even.
  Value* round(Value* magnitude, Value* unit, Value* negative) {
    Value* zeros = b_.CreateTrunc(
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, magnitude, b_.getFalse()), b_.getInt64Ty());
    // To 53 bits, or to the last bit of subnormal numbers.
    Value* drop = b_.CreateSub(word(128 - 53), zeros);
    drop = larger(b_, drop, b_.CreateSub(word(static_cast<uint64_t>(-1074)), unit));
    Value* up = smaller(b_, larger(b_, b_.CreateNeg(drop), word(0)), word(127));
    Value* moved = b_.CreateShl(magnitude, wide(up));
    // Two bits more than wanted, the last one sticky.
    Value* down = b_.CreateSub(larger(b_, drop, word(0)), word(2));
    Value* two_up = b_.CreateICmpSLT(down, word(0));  // drop is at most 1: nothing sticky below
    Value* raised =
        b_.CreateShl(moved, wide(smaller(b_, larger(b_, b_.CreateNeg(down), word(0)), word(2))));
    Value* kept = b_.CreateSelect(two_up, raised, shift_sticky(moved, larger(b_, down, word(0))));
    Value* quad = b_.CreateTrunc(kept, b_.getInt64Ty());  // 55 bits
    Value* last = b_.CreateAnd(quad, word(7));
    // Up from above a half, and from a half where the number is odd.
    Value* above = b_.CreateICmpEQ(b_.CreateAnd(quad, word(3)), word(3));
    Value* tie_up = b_.CreateICmpEQ(last, word(6));
    Value* mantissa = b_.CreateAdd(b_.CreateLShr(quad, 2),
                                   b_.CreateZExt(b_.CreateOr(above, tie_up), b_.getInt64Ty()));
    Value* field = b_.CreateAdd(b_.CreateAdd(unit, drop), word(1074));
    Value* bits = b_.CreateAdd(b_.CreateShl(field, 52), mantissa);
    Value* infinity = word(uint64_t{0x7ff} << 52);
    Value* over =
        b_.CreateOr(b_.CreateICmpSGT(field, word(2045)), b_.CreateICmpUGT(bits, infinity));
    bits = b_.CreateSelect(over, infinity, bits);
    bits = b_.CreateSelect(b_.CreateICmpEQ(magnitude, big(0)), word(0), bits);
    Value* sign = b_.CreateShl(b_.CreateZExt(negative, b_.getInt64Ty()), 63);
    return k_.unbits(b_.CreateOr(bits, sign));
  }

  const MathKit& k_;
  llvm::IRBuilder<>& b_;
};

}  // namespace

Value* emit_soft_fma(MathContext& context, Value* x, Value* y, Value* z) {
  auto& b = context.builder;
  llvm::Type* type = x->getType();
  if (type->getScalarType()->isFloatTy()) return float_fma(b, x, y, z);
  auto one = [&](Value* u, Value* v, Value* w) {
    return call_shared(context, "heddle_fma", u->getType(), {u, v, w},
                       [](const MathKit& k, llvm::ArrayRef<Value*> arguments) {
                         return DoubleFma(k).make(arguments[0], arguments[1], arguments[2]);
                       });
  };
  if (!type->isVectorTy()) return one(x, y, z);
  Value* result = llvm::PoisonValue::get(type);
  for (int i = 0; i < lanes_of(type); ++i) {
    auto lane = static_cast<uint64_t>(i);
    auto part = [&](Value* v) { return b.CreateExtractElement(v, lane); };
    result = b.CreateInsertElement(result, one(part(x), part(y), part(z)), lane);
  }
  return result;
}

}  // namespace heddle::emit
