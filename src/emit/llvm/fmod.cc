// Long division on the integer mantissas, eleven bits per step: with x = mx 2^ex and y = my 2^ey,
// mx < my < 2^53 after each step, so that mx << 11 fits a word.
#include "emit/llvm/fmod.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "emit/llvm/types.h"

namespace heddle::emit {
namespace {

using llvm::BasicBlock;
using llvm::Value;

constexpr char kName[] = "heddle_fmod";
constexpr uint64_t kImplicit = uint64_t{1} << 52;
constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;

class FmodMaker {
 public:
  FmodMaker(llvm::Module& module, const llvm::Function& caller)
      : function_(llvm::Function::Create(
            llvm::FunctionType::get(llvm::Type::getDoubleTy(module.getContext()),
                                    {llvm::Type::getDoubleTy(module.getContext()),
                                     llvm::Type::getDoubleTy(module.getContext())},
                                    false),
            llvm::Function::InternalLinkage, kName, module)),
        b_(module.getContext()) {
    llvm::AttrBuilder attributes(module.getContext(), caller.getAttributes().getFnAttrs());
    function_->setAttributes(
        llvm::AttributeList().addFnAttributes(module.getContext(), attributes));
  }

  llvm::Function* make() {
    Value *x = function_->getArg(0), *y = function_->getArg(1);
    b_.SetInsertPoint(block("entry"));
    Value* x_bits = b_.CreateBitCast(x, b_.getInt64Ty());
    Value* ax = b_.CreateAnd(x_bits, ~(uint64_t{1} << 63));
    Value* ay = b_.CreateAnd(b_.CreateBitCast(y, b_.getInt64Ty()), ~(uint64_t{1} << 63));
    sign_ = b_.CreateAnd(x_bits, uint64_t{1} << 63);
    BasicBlock *invalid = block("invalid"), *valid = block("valid"), *small = block("small"),
               *divide = block("divide");
    Value* bad = b_.CreateOr(b_.CreateICmpUGE(ax, number(kInfinity)),
                             b_.CreateICmpUGT(b_.CreateSub(ay, number(1)), number(kInfinity - 1)));
    b_.CreateCondBr(bad, invalid, valid);
    b_.SetInsertPoint(invalid);
    Value* product = b_.CreateFMul(x, y);  // 0 or infinity against each other, or NaN
    b_.CreateRet(b_.CreateFDiv(product, product));
    b_.SetInsertPoint(valid);
    b_.CreateCondBr(b_.CreateICmpULT(ax, ay), small, divide);
    b_.SetInsertPoint(small);
    b_.CreateRet(x);
    b_.SetInsertPoint(divide);
    long_division(ax, ay);
    return function_;
  }

 private:
  BasicBlock* block(const char* name) {
    return BasicBlock::Create(b_.getContext(), name, function_);
  }
  Value* number(uint64_t n) { return b_.getInt64(n); }
  Value* exponent(Value* bits) {  // of a subnormal: 1
    Value* field = b_.CreateLShr(bits, 52);
    return b_.CreateSelect(b_.CreateICmpEQ(field, number(0)), number(1), field);
  }
  Value* mantissa(Value* bits) {
    Value* low = b_.CreateAnd(bits, kImplicit - 1);
    Value* normal = b_.CreateICmpUGE(bits, number(kImplicit));
    return b_.CreateSelect(normal, b_.CreateOr(low, kImplicit), low);
  }

  void long_division(Value* ax, Value* ay) {
    Value *ex = exponent(ax), *ey = exponent(ay), *my = mantissa(ay);
    Value *first = b_.CreateURem(mantissa(ax), my), *distance = b_.CreateSub(ex, ey);
    BasicBlock *before = b_.GetInsertBlock(), *head = block("head"), *step = block("step"),
               *done = block("done");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* left = b_.CreatePHI(b_.getInt64Ty(), 2);
    llvm::PHINode* rest = b_.CreatePHI(b_.getInt64Ty(), 2);
    left->addIncoming(distance, before);
    rest->addIncoming(first, before);
    b_.CreateCondBr(b_.CreateICmpEQ(left, number(0)), done, step);
    b_.SetInsertPoint(step);
    Value* bits = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, number(11));
    rest->addIncoming(b_.CreateURem(b_.CreateShl(rest, bits), my), step);
    left->addIncoming(b_.CreateSub(left, bits), step);
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
    compose(rest, ey);
  }

  // rest * 2^ey as a number: the leading bit moves up to its place, as far as the exponent allows.
  void compose(Value* rest, Value* ey) {
    Value* zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, rest, b_.getFalse());
    Value* shift = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSub(zeros, number(11)),
                                            b_.CreateSub(ey, number(1)));
    Value* high = b_.CreateShl(b_.CreateSub(b_.CreateSub(ey, shift), number(1)), 52);
    Value* bits = b_.CreateAdd(high, b_.CreateShl(rest, shift));
    bits = b_.CreateSelect(b_.CreateICmpEQ(rest, number(0)), number(0), bits);
    b_.CreateRet(b_.CreateBitCast(b_.CreateOr(bits, sign_), b_.getDoubleTy()));
  }

  llvm::Function* function_;
  llvm::IRBuilder<> b_;
  Value* sign_ = nullptr;
};

}  // namespace

Value* emit_fmod(MathContext& context, Value* x, Value* y) {
  auto& b = context.builder;
  llvm::Function* caller = b.GetInsertBlock()->getParent();
  llvm::Module& module = *caller->getParent();
  llvm::Function* function = module.getFunction(kName);
  if (!function) function = FmodMaker(module, *caller).make();
  llvm::Type* type = x->getType();
  // The remainder of two floats is a float: computing it in double is exact.
  auto one = [&](Value* u, Value* v) -> Value* {
    Value* r = b.CreateCall(function,
                            {b.CreateFPExt(u, b.getDoubleTy()), b.CreateFPExt(v, b.getDoubleTy())});
    return b.CreateFPTrunc(r, type->getScalarType());
  };
  if (!type->isVectorTy()) return one(x, y);
  Value* result = llvm::PoisonValue::get(type);
  for (int i = 0; i < lanes_of(type); ++i) {
    result = b.CreateInsertElement(
        result, one(b.CreateExtractElement(x, i), b.CreateExtractElement(y, i)), i);
  }
  return result;
}

}  // namespace heddle::emit
