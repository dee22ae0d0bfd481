// The signatures of these intrinsics differ between versions of LLVM; they are called nowhere else.
#include "emit/llvm/math_avx512.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

namespace heddle::emit {
namespace {

using llvm::Value;
namespace intrin = llvm::Intrinsic;

constexpr unsigned kFraction[] = {intrin::x86_avx512_mask_reduce_ps_128,
                                  intrin::x86_avx512_mask_reduce_ps_256,
                                  intrin::x86_avx512_mask_reduce_ps_512};
constexpr unsigned kScale[] = {intrin::x86_avx512_mask_scalef_ps_128,
                               intrin::x86_avx512_mask_scalef_ps_256,
                               intrin::x86_avx512_mask_scalef_ps_512};
constexpr unsigned kReciprocal[] = {intrin::x86_avx512_rcp14_ps_128,
                                    intrin::x86_avx512_rcp14_ps_256,
                                    intrin::x86_avx512_rcp14_ps_512};
constexpr unsigned kScaleF64[] = {intrin::x86_avx512_mask_scalef_pd_128,
                                  intrin::x86_avx512_mask_scalef_pd_256,
                                  intrin::x86_avx512_mask_scalef_pd_512};

int register_bits(const MathKit& k) {
  return std::min(512, lanes_of(k.type()) * (k.is_double() ? 64 : 32));
}

// One masked instruction; those of 512 bits also take a rounding mode: the current one. `keep`:
// null for all lanes, else the others are 0.
Value* masked(const MathKit& k, const unsigned (&ids)[3], Value* a, Value* b,
              Value* keep = nullptr) {
  auto& builder = k.builder();
  unsigned lanes = static_cast<unsigned>(lanes_of(a->getType()));
  unsigned bits = lanes * a->getType()->getScalarSizeInBits();
  Value* mask = builder.getIntN(std::max(8u, lanes), ~uint64_t{0} >> (64 - std::max(8u, lanes)));
  Value* rest = llvm::PoisonValue::get(a->getType());
  if (keep) {
    mask = builder.CreateBitCast(keep, builder.getIntNTy(lanes));
    mask = builder.CreateZExt(mask, builder.getIntNTy(std::max(8u, lanes)));
    rest = llvm::Constant::getNullValue(a->getType());
  }
  llvm::SmallVector<Value*> operands = {a, b, rest, mask};
  if (bits == 512) operands.push_back(builder.getInt32(4));
  return builder.CreateIntrinsic(ids[bits == 512 ? 2 : bits == 256 ? 1 : 0], {}, operands);
}

// Register by register: one(parts of the operands).
template <typename One>
Value* by_registers(const MathKit& k, llvm::ArrayRef<Value*> operands, One one) {
  auto& builder = k.builder();
  int lanes = register_bits(k) / static_cast<int>(k.type()->getScalarSizeInBits());
  Value* result = llvm::PoisonValue::get(k.type());
  for (int at = 0; at < lanes_of(k.type()); at += lanes) {
    Value* position = builder.getInt64(static_cast<uint64_t>(at));
    llvm::SmallVector<Value*> parts;
    for (Value* v : operands) {
      auto* type =
          llvm::FixedVectorType::get(v->getType()->getScalarType(), static_cast<unsigned>(lanes));
      parts.push_back(builder.CreateExtractVector(type, v, position));
    }
    result = builder.CreateInsertVector(k.type(), result, one(parts), position);
  }
  return result;
}

}  // namespace

bool has_avx512_exponent(const MathKit& k) {
  if (!k.context().isa.avx512 || !k.type()->isVectorTy()) return false;
  int bits = lanes_of(k.type()) * (k.is_double() ? 64 : 32);
  return bits == 128 || bits == 256 || (bits > 0 && bits % 512 == 0);
}

Value* avx512_scale(const MathKit& k, Value* a, Value* n) {
  return by_registers(k, {a, n}, [&](llvm::ArrayRef<Value*> x) {
    return k.is_double() ? masked(k, kScaleF64, x[0], x[1]) : masked(k, kScale, x[0], x[1]);
  });
}

Value* avx512_scale_where(const MathKit& k, Value* keep, Value* a, Value* n) {
  return by_registers(k, {a, n, keep}, [&](llvm::ArrayRef<Value*> x) {
    return masked(k, kScale, x[0], x[1], x[2]);
  });
}

Value* avx512_fraction(const MathKit& k, Value* x) {
  // The immediate: no fraction bits, towards -infinity.
  return by_registers(k, {x}, [&](llvm::ArrayRef<Value*> part) {
    return masked(k, kFraction, part[0], k.builder().getInt32(1));
  });
}

Value* avx512_reciprocal_14(const MathKit& k, Value* x) {
  auto& builder = k.builder();
  return by_registers(k, {x}, [&](llvm::ArrayRef<Value*> part) {
    const auto lanes = static_cast<unsigned>(lanes_of(part[0]->getType()));
    const unsigned bits = std::max(8u, lanes);
    llvm::Value* all = builder.getIntN(bits, ~uint64_t{0} >> (64 - bits));
    return builder.CreateIntrinsic(
        kReciprocal[lanes == 16  ? 2
                    : lanes == 8 ? 1
                                 : 0],
        {}, {part[0], llvm::Constant::getNullValue(part[0]->getType()), all});
  });
}

Value* avx512_reciprocal(const MathKit& k, Value* x) {
  Value* y = avx512_reciprocal_14(k, x);
  return k.mad(y, k.mad(k.neg(x), y, k.number(1)), y);
}

}  // namespace heddle::emit
