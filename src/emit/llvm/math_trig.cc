// sin, cos and tan of double: x = n pi/2 + r with r in two parts, then polynomials on |r| <= pi/4.
// Up to 1.6e6 pi/2 is subtracted in pieces of 33 bits, so that n times a piece is exact. Beyond
// that x 2/pi is formed from the bits of 2/pi that matter (Payne and Hanek, 1983), lane by lane.
#include <llvm/IR/Constants.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include <limits>

#include "emit/llvm/math_parts.h"
#include "emit/llvm/math_shared.h"
#include "emit/llvm/math_tables.h"

namespace heddle::emit {
namespace {

using llvm::Value;

constexpr double kLarge = 1.6e6;
constexpr double kTwoOverPi = 0.63661977236758138;
constexpr double kHalfPi[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69,
                              0x1.b839a252049c1p-104};
constexpr double kHalfPiLow = 6.123233995736766e-17;  // pi/2 minus its double

// Bits of 2/pi after the point, preceded by one word of zeros.
constexpr uint64_t kTwoOverPiBits[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

struct Reduced {
  Value *high, *low;
  Value* quadrant;  // i64; the last two bits count
};

llvm::GlobalVariable* two_over_pi(llvm::Module& module) {
  constexpr char kName[] = "heddle_two_over_pi";
  if (auto* known = module.getGlobalVariable(kName, true)) return known;
  auto* table = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(kTwoOverPiBits));
  auto* global = new llvm::GlobalVariable(module, table->getType(), true,
                                          llvm::GlobalValue::PrivateLinkage, table, kName);
  global->setAlignment(llvm::Align(16));
  return global;
}

// Reduces one number with 192 bits of 2/pi: those of weight 4 / x and below, so that the product's
// two topmost bits are the quadrant.
Reduced reduce_exactly(const MathKit& k, Value* x) {
  auto& b = k.builder();
  auto number = [&](uint64_t n) { return b.getInt64(n); };
  Value* bits = b.CreateAnd(k.bits(x), number(~uint64_t{0} >> 1));
  Value* exponent = b.CreateLShr(bits, 52);
  Value* mantissa =
      b.CreateOr(b.CreateAnd(bits, number((uint64_t{1} << 52) - 1)), number(uint64_t{1} << 52));
  // The window starts exponent - 1075 - 2 bits after the point, 64 more into the table.
  Value* start = larger(b, b.CreateSub(exponent, number(1075 + 2 - 64)), number(0));
  Value* word = b.CreateLShr(start, 6);
  llvm::GlobalVariable* table = two_over_pi(*b.GetInsertBlock()->getModule());
  Value* words[4];
  for (uint64_t i = 0; i < 4; ++i) {
    Value* at = b.CreateGEP(b.getInt64Ty(), table, b.CreateAdd(word, number(i)));
    words[i] = b.CreateLoad(b.getInt64Ty(), at);
  }
  Value* wide_mantissa = b.CreateZExt(mantissa, b.getInt128Ty());
  Value* parts[3];
  for (size_t i = 0; i < 3; ++i) {
    Value* window = b.CreateIntrinsic(llvm::Intrinsic::fshl, {b.getInt64Ty()},
                                      {words[i], words[i + 1], b.CreateAnd(start, number(63))});
    parts[i] = b.CreateMul(b.CreateZExt(window, b.getInt128Ty()), wide_mantissa);
  }
  // The product's upper 128 of 192 bits.
  Value* sum = b.CreateAdd(b.CreateLShr(parts[2], 64), parts[1]);
  sum = b.CreateAdd(sum, b.CreateShl(parts[0], 64));
  Value* top = b.CreateTrunc(b.CreateLShr(sum, 126), b.getInt64Ty());
  Value* fraction = b.CreateShl(sum, 2);
  // To nearest: a fraction of a half or more is one quadrant more, and negative.
  Value* negative = b.CreateICmpSLT(fraction, llvm::ConstantInt::get(b.getInt128Ty(), 0));
  Value* quadrant = b.CreateAdd(top, b.CreateZExt(negative, b.getInt64Ty()));
  Value* magnitude = b.CreateSelect(negative, b.CreateNeg(fraction), fraction);
  Value* first = b.CreateTrunc(b.CreateLShr(magnitude, 75), b.getInt64Ty());   // 53 bits
  Value* second = b.CreateTrunc(b.CreateLShr(magnitude, 11), b.getInt64Ty());  // 64 more
  auto [high, low] = k.quick_sum(k.mul(b.CreateUIToFP(first, k.type()), 0x1p-53),
                                 k.mul(b.CreateUIToFP(second, k.type()), 0x1p-117));
  auto [r, r_low] = k.product(high, k.number(1.5707963267948966));
  r_low = k.add(r_low, k.mad(high, kHalfPiLow, k.mul(low, 1.5707963267948966)));
  auto [sum_high, sum_low] = k.quick_sum(r, r_low);
  // A negative x negates all of it.
  Value* turned = b.CreateICmpSLT(k.bits(x), number(0));
  Value* flip = b.CreateXor(turned, negative);
  auto sign = [&](Value* v) { return k.select(flip, k.neg(v), v); };
  return {sign(sum_high), sign(sum_low), b.CreateSelect(turned, b.CreateNeg(quadrant), quadrant)};
}

Reduced reduce_quickly(const MathKit& k, Value* x) {
  auto [n, quadrant] = k.nearest(k.mul(x, kTwoOverPi));
  Value* first = k.mad(n, -kHalfPi[0], x);
  auto [high, low] = k.sum(first, k.mul(n, -kHalfPi[1]));
  low = k.mad(n, -kHalfPi[2], low);
  low = k.mad(n, -kHalfPi[3], low);
  auto [r, rest] = k.sum(high, low);
  return {r, rest, quadrant};
}

Reduced reduce(const MathKit& k, Value* x) {
  auto& b = k.builder();
  Reduced quick = reduce_quickly(k, x);
  Value* large = k.greater(k.abs(x), kLarge);
  Value* any = large->getType()->isVectorTy() ? b.CreateOrReduce(large) : large;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(b.getContext(), "", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "", function);
  b.CreateCondBr(any, slow, after);
  b.SetInsertPoint(slow);
  llvm::Type* integers = like(b.getInt64Ty(), x);
  Value* fields[] = {llvm::PoisonValue::get(k.type()), llvm::PoisonValue::get(k.type()),
                     llvm::PoisonValue::get(integers)};
  auto one_lane = [](const MathKit& lane, llvm::ArrayRef<Value*> arguments) -> Value* {
    Reduced r = reduce_exactly(lane, arguments[0]);
    auto& builder = lane.builder();
    Value* result = llvm::PoisonValue::get(llvm::StructType::get(
        lane.type(), lane.type(), llvm::Type::getInt64Ty(builder.getContext())));
    result = builder.CreateInsertValue(result, r.high, 0);
    result = builder.CreateInsertValue(result, r.low, 1);
    return builder.CreateInsertValue(result, r.quadrant, 2);
  };
  int lanes = lanes_of(k.type());
  for (int i = 0; i < lanes; ++i) {
    Value* x_lane =
        k.type()->isVectorTy() ? b.CreateExtractElement(x, static_cast<uint64_t>(i)) : x;
    llvm::Type* result = llvm::StructType::get(b.getDoubleTy(), b.getDoubleTy(), b.getInt64Ty());
    Value* reduced = call_shared(k.context(), "heddle_reduce", result, {x_lane}, one_lane);
    for (unsigned field = 0; field < 3; ++field) {
      Value* part = b.CreateExtractValue(reduced, field);
      fields[field] = k.type()->isVectorTy()
                          ? b.CreateInsertElement(fields[field], part, static_cast<uint64_t>(i))
                          : part;
    }
  }
  Value* quick_fields[] = {quick.high, quick.low, quick.quadrant};
  for (unsigned field = 0; field < 3; ++field) {
    fields[field] = b.CreateSelect(large, fields[field], quick_fields[field]);
  }
  b.CreateBr(after);
  b.SetInsertPoint(after);
  Value* merged[3];
  for (unsigned field = 0; field < 3; ++field) {
    llvm::PHINode* phi = b.CreatePHI(fields[field]->getType(), 2);
    phi->addIncoming(fields[field], slow);
    phi->addIncoming(quick_fields[field], before);
    merged[field] = phi;
  }
  return {merged[0], merged[1], merged[2]};
}

Value* sin_part(const MathKit& k, const Reduced& r) {
  Value* z = k.mul(r.high, r.high);
  Value* low = k.sub(r.low, k.mul(k.mul(z, 0.5), r.low));
  return k.add(r.high, k.mad(k.mul(r.high, z), k.poly(z, kSinF64), low));
}

Value* cos_part(const MathKit& k, const Reduced& r) {
  Value* z = k.mul(r.high, r.high);
  Value* half = k.mul(z, 0.5);
  Value* top = k.sub(k.number(1), half);
  Value* lost = k.sub(k.sub(k.number(1), top), half);
  Value* rest = k.sub(k.mul(k.mul(z, z), k.poly(z, kCosF64)), k.mul(r.high, r.low));
  return k.add(top, k.add(lost, rest));
}

enum class Which { sin, cos, tan };

Value* body(const MathKit& k, Value* x, Which which) {
  auto& b = k.builder();
  Reduced r = reduce(k, x);
  Value *s = sin_part(k, r), *c = cos_part(k, r);
  auto bit = [&](Value* n, uint64_t mask) {
    return b.CreateICmpNE(b.CreateAnd(n, k.integer(mask)), k.integer(0));
  };
  Value* odd = bit(r.quadrant, 1);
  Value* result;
  if (which == Which::tan) {
    Value* top = k.select(odd, k.neg(c), s);
    result = k.div(top, k.select(odd, s, c));
  } else {
    bool sin = which == Which::sin;
    Value* turned = sin ? r.quadrant : b.CreateAdd(r.quadrant, k.integer(1));
    result = sin ? k.select(odd, c, s) : k.select(odd, s, c);
    result = k.select(bit(turned, 2), k.neg(result), result);
  }
  if (which != Which::cos) result = k.select(k.equal(x, 0), x, result);
  Value* finite = k.less(k.abs(x), std::numeric_limits<double>::infinity());
  return k.select(finite, result, k.sub(x, x));
}

}  // namespace

Value* math_sin(const MathKit& k, Value* x) { return body(k, x, Which::sin); }
Value* math_cos(const MathKit& k, Value* x) { return body(k, x, Which::cos); }
Value* math_tan(const MathKit& k, Value* x) { return body(k, x, Which::tan); }

}  // namespace heddle::emit
