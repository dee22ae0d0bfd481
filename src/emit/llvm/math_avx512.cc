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
constexpr unsigned kScaleF64[] = {intrin::x86_avx512_mask_scalef_pd_128,
                                  intrin::x86_avx512_mask_scalef_pd_256,
                                  intrin::x86_avx512_mask_scalef_pd_512};

int register_bits(const MathKit& k) {
  return std::min(512, lanes_of(k.type()) * (k.is_double() ? 64 : 32));
}

// One masked instruction with all lanes on; those of 512 bits also say how to round: as usual.
Value* masked(const MathKit& k, const unsigned (&ids)[3], Value* a, Value* b) {
  auto& builder = k.builder();
  unsigned lanes = static_cast<unsigned>(lanes_of(a->getType()));
  unsigned bits = lanes * a->getType()->getScalarSizeInBits();
  Value* all = builder.getIntN(std::max(8u, lanes), ~uint64_t{0} >> (64 - std::max(8u, lanes)));
  llvm::SmallVector<Value*> operands = {a, b, llvm::PoisonValue::get(a->getType()), all};
  if (bits == 512) operands.push_back(builder.getInt32(4));
  return builder.CreateIntrinsic(ids[bits == 512 ? 2 : bits == 256 ? 1 : 0], {}, operands);
}

// Register by register. `b` null: the immediate of reduce, no fraction bits, towards -infinity.
Value* by_registers(const MathKit& k, const unsigned (&ids)[3], Value* a, Value* b) {
  auto& builder = k.builder();
  llvm::Type* element = k.type()->getScalarType();
  int lanes = register_bits(k) / static_cast<int>(element->getPrimitiveSizeInBits());
  auto* part_type = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  Value* result = llvm::PoisonValue::get(k.type());
  for (int at = 0; at < lanes_of(k.type()); at += lanes) {
    Value* position = builder.getInt64(static_cast<uint64_t>(at));
    auto part = [&](Value* v) { return builder.CreateExtractVector(part_type, v, position); };
    Value* second = b ? part(b) : static_cast<Value*>(builder.getInt32(1));
    Value* done = masked(k, ids, part(a), second);
    result = builder.CreateInsertVector(k.type(), result, done, position);
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
  return k.is_double() ? by_registers(k, kScaleF64, a, n) : by_registers(k, kScale, a, n);
}

Value* avx512_fraction(const MathKit& k, Value* x) {
  return by_registers(k, kFraction, x, nullptr);
}

}  // namespace heddle::emit
