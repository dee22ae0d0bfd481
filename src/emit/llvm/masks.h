// Lane masks: null and all-true constants mean every lane.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

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

// The number of lanes that are on, if they are the first lanes of a constant mask and fill a vector
// register of 128 bits or more, so that a narrower access needs no mask; else 0. (LLVM fails to
// select instructions for comparisons that an even narrower access shrinks to one lane.)
inline unsigned first_lanes(llvm::Value* mask, int64_t bytes) {
  auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  auto* type = constant ? llvm::dyn_cast<llvm::FixedVectorType>(constant->getType()) : nullptr;
  if (!type) return 0;
  unsigned on = 0, last = 0;
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    llvm::Constant* lane = constant->getAggregateElement(i);
    if (!lane || !llvm::isa<llvm::ConstantInt>(lane)) return 0;
    if (lane->isOneValue()) ++on, last = i + 1;
  }
  return on == last && on * bytes >= 16 && (on & (on - 1)) == 0 ? on : 0;
}

}  // namespace heddle::emit
