// Lane masks: null and all-true constants mean every lane.
#pragma once

#include <llvm/IR/Constants.h>

namespace heddle::emit {

inline bool all_true(llvm::Value* mask) {
  auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  return !mask || (constant && constant->isAllOnesValue());
}

// Lane `i` of a constant mask; the mask is constant, or null.
inline bool lane_is_on(llvm::Value* mask, int i) {
  if (!mask) return true;
  auto* constant = llvm::cast<llvm::Constant>(mask);
  return constant->getAggregateElement(static_cast<unsigned>(i))->isOneValue();
}

}  // namespace heddle::emit
