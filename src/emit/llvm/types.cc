#include "emit/llvm/types.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Intrinsics.h>

#include "base/check.h"

namespace heddle::emit {

llvm::Type* value_type(llvm::LLVMContext& context, Type type) {
  if (type == Type::f32) return llvm::Type::getFloatTy(context);
  if (type == Type::f64) return llvm::Type::getDoubleTy(context);
  if (type == Type::pred) return llvm::Type::getInt1Ty(context);
  return llvm::Type::getIntNTy(context, static_cast<unsigned>(tensor::type_bits(type)));
}

llvm::Type* memory_type(llvm::LLVMContext& context, Type type) {
  return type == Type::pred ? llvm::Type::getInt8Ty(context) : value_type(context, type);
}

int lanes_of(llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* like(llvm::Type* scalar, llvm::Type* like) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? llvm::FixedVectorType::get(scalar, vector->getNumElements()) : scalar;
}

llvm::Constant* int_constant(llvm::Type* type, uint64_t bits) {
  // APInt takes the low bits only, so that an unsigned pattern fits a narrow type.
  llvm::APInt value(64, bits);
  return llvm::ConstantInt::get(type, value.trunc(type->getScalarSizeInBits()));
}

llvm::Constant* float_constant(llvm::Type* type, double value) {
  return llvm::ConstantFP::get(type, value);
}

llvm::Value* to_bits(llvm::IRBuilder<>& builder, llvm::Value* x) {
  unsigned width = x->getType()->getScalarSizeInBits();
  return builder.CreateBitCast(x, like(builder.getIntNTy(width), x));
}

llvm::Value* from_bits(llvm::IRBuilder<>& builder, llvm::Value* bits, llvm::Type* type) {
  return builder.CreateBitCast(bits, type);
}

llvm::Value* intrinsic(llvm::IRBuilder<>& builder, unsigned id,
                       std::initializer_list<llvm::Value*> operands) {
  HEDDLE_CHECK(operands.size() > 0);
  return builder.CreateIntrinsic(id, {(*operands.begin())->getType()},
                                 llvm::ArrayRef<llvm::Value*>(operands));
}

llvm::Value* larger(llvm::IRBuilder<>& builder, llvm::Value* a, llvm::Value* b) {
  return builder.CreateSelect(builder.CreateICmpSGT(a, b), a, b);
}

llvm::Value* smaller(llvm::IRBuilder<>& builder, llvm::Value* a, llvm::Value* b) {
  return builder.CreateSelect(builder.CreateICmpSLT(a, b), a, b);
}

}  // namespace heddle::emit
