// Element types as LLVM types, and small helpers on values that may be scalars or vectors.
//
// How a value of a type is held: pred is i1; integers are iN whatever their sign; f32 and f64 are
// float and double; f16, bf16 and the f8 types are their bits, i16 and i8. In memory pred is i8.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "tensor/type.h"

namespace heddle::emit {

using tensor::Type;

llvm::Type* value_type(llvm::LLVMContext& context, Type type);
llvm::Type* memory_type(llvm::LLVMContext& context, Type type);

// `scalar`, or a vector of it where `like` is a vector type (of as many lanes).
llvm::Type* like(llvm::Type* scalar, llvm::Type* like);
inline llvm::Type* like(llvm::Type* scalar, llvm::Value* value) {
  return like(scalar, value->getType());
}
int lanes_of(llvm::Type* type);  // 1 for scalars

// Constants of the shape of `type`: splat over lanes where it is a vector.
llvm::Constant* int_constant(llvm::Type* type, uint64_t bits);
llvm::Constant* float_constant(llvm::Type* type, double value);

// The same bits as integers, and back: i32 for float, i64 for double.
llvm::Value* to_bits(llvm::IRBuilder<>& builder, llvm::Value* x);
llvm::Value* from_bits(llvm::IRBuilder<>& builder, llvm::Value* bits, llvm::Type* type);

// A call of an intrinsic overloaded on the type of its first operand.
llvm::Value* intrinsic(llvm::IRBuilder<>& builder, unsigned id,
                       std::initializer_list<llvm::Value*> operands);

// The larger and the smaller of two signed numbers. (Unlike the intrinsics these fold.)
llvm::Value* larger(llvm::IRBuilder<>& builder, llvm::Value* a, llvm::Value* b);
llvm::Value* smaller(llvm::IRBuilder<>& builder, llvm::Value* a, llvm::Value* b);

}  // namespace heddle::emit
