#include "emit/llvm/math_shared.h"

#include <fmt/format.h>
#include <llvm/IR/Module.h>

namespace heddle::emit {

using llvm::Value;

Value* call_shared(MathContext& context, const char* name, llvm::Type* result,
                   llvm::ArrayRef<Value*> arguments, SharedBody body) {
  auto& b = context.builder;
  llvm::Function* caller = b.GetInsertBlock()->getParent();
  llvm::Module& module = *caller->getParent();
  llvm::Type* type = arguments[0]->getType();
  std::string full = fmt::format("{}_{}f{}", name, lanes_of(type), type->getScalarSizeInBits());
  llvm::Function* function = module.getFunction(full);
  if (!function) {
    llvm::SmallVector<llvm::Type*> types;
    for (Value* argument : arguments) types.push_back(argument->getType());
    function = llvm::Function::Create(llvm::FunctionType::get(result, types, false),
                                      llvm::Function::InternalLinkage, full, module);
    llvm::AttrBuilder attributes(module.getContext(), caller->getAttributes().getFnAttrs());
    function->addFnAttrs(attributes);
    llvm::IRBuilder<> inner(llvm::BasicBlock::Create(module.getContext(), "", function));
    MathContext inner_context{inner, context.isa};
    llvm::SmallVector<Value*> values;
    for (llvm::Argument& argument : function->args()) values.push_back(&argument);
    MathKit kit(inner_context, values[0]);
    Value* value = body(kit, values);
    inner.CreateRet(value);
  }
  return b.CreateCall(function, arguments);
}

}  // namespace heddle::emit
