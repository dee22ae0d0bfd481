// The operator `dot`: instructions of mma.def that each lane executes independently (kernel/mma.h).
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "emit/llvm/kernel_emitter.h"
#include "kernel/mma.h"

namespace heddle::emit {

using llvm::Value;
namespace intrin = llvm::Intrinsic;

namespace {

// For 4, 8 and 16 lanes, with arguments (sum, a, b); multiply-adds of pairs take (a, b).
struct DotRow {
  std::string_view name;
  unsigned intrinsics[3];
};

constexpr DotRow kRows[] = {
    {"dpbusd",
     {intrin::x86_avx512_vpdpbusd_128, intrin::x86_avx512_vpdpbusd_256,
      intrin::x86_avx512_vpdpbusd_512}},
    {"dpwssd",
     {intrin::x86_avx512_vpdpwssd_128, intrin::x86_avx512_vpdpwssd_256,
      intrin::x86_avx512_vpdpwssd_512}},
    {"dpwusd", {intrin::x86_avx2_vpdpwusd_128, intrin::x86_avx2_vpdpwusd_256, 0}},
    {"madd_u8_s8",
     {intrin::x86_sse2_pmadd_wd, intrin::x86_avx2_pmadd_wd, intrin::x86_avx512_pmaddw_d_512}},
    {"madd_s16",
     {intrin::x86_sse2_pmadd_wd, intrin::x86_avx2_pmadd_wd, intrin::x86_avx512_pmaddw_d_512}},
    {"dpbf16ps",
     {intrin::x86_avx512bf16_dpbf16ps_128, intrin::x86_avx512bf16_dpbf16ps_256,
      intrin::x86_avx512bf16_dpbf16ps_512}},
};

// The intrinsic of the instruction in this many lanes; 0: it has none.
unsigned intrinsic_of(const kernel::MmaDescriptor& mma, int lanes) {
  for (const DotRow& row : kRows)
    for (unsigned i = 0; i < 3; ++i)
      if (row.name == mma.name && lanes == 4 << i) return row.intrinsics[i];
  return 0;
}

bool is_madd(const kernel::MmaDescriptor& mma) { return mma.name.starts_with("madd_"); }

// Sums of two pairs, each exact: bytes are multiplied as the low, then the high halves of 16 bits.
Value* madd(const kernel::MmaDescriptor& mma, llvm::Function* function, Value* a, Value* b,
            Value* sum, llvm::IRBuilderBase& build) {
  llvm::Type* pairs = function->getFunctionType()->getParamType(0);
  a = build.CreateBitCast(a, pairs);
  b = build.CreateBitCast(b, pairs);
  const auto add = [&](Value* x, Value* y) {
    sum = build.CreateAdd(sum, build.CreateCall(function, {x, y}));
  };
  if (mma.k == 2) {
    add(a, b);
    return sum;
  }
  auto* byte = llvm::ConstantInt::get(pairs, 8);
  add(build.CreateAnd(a, llvm::ConstantInt::get(pairs, 0xff)),
      build.CreateAShr(build.CreateShl(b, byte), byte));
  add(build.CreateLShr(a, byte), build.CreateAShr(b, byte));
  return sum;
}

}  // namespace

Val KernelEmitter::dot(const Expr& expr) {
  const kernel::MmaDescriptor& mma = kernel::mma_table()[static_cast<size_t>(expr.imm)];
  const Val a = eval(expr.operands[0]), b = eval(expr.operands[1]), c = eval(expr.operands[2]);
  Val result = join({&a, &b, &c});
  result.varying = !a.uniform() || !b.uniform() || !c.uniform();
  result.bounds = Bounds::of(expr.type);
  const int lanes = result.varying ? lanes_ : 4;
  const unsigned intrinsic =
      std::ranges::count(isa_.dots, mma.name) > 0 ? intrinsic_of(mma, lanes) : 0;
  if (intrinsic == 0) {
    fail("dot {} in {} lanes is not one of this CPU", mma.name, lanes);
    return poison(expr.type);
  }
  At at(*this, result.level);
  // The words and the sum in the vector types of the intrinsic.
  auto* function = intrin::getDeclaration(&module_, intrinsic);
  auto argument = [&](const Val& x, Type type, unsigned place) {
    Value* v = operand(x, type, result.varying);
    if (!result.varying) v = b_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
    return is_madd(mma) ? v : b_.CreateBitCast(v, function->getFunctionType()->getParamType(place));
  };
  Value* sum = argument(c, mma.d, 0);
  Value *left = argument(a, mma.word(), 1), *right = argument(b, mma.word(), 2);
  result.v = is_madd(mma) ? madd(mma, function, left, right, sum, b_)
                          : b_.CreateCall(function, {sum, left, right});
  if (!result.varying) result.v = b_.CreateExtractElement(result.v, uint64_t{0});
  return result;
}

}  // namespace heddle::emit
