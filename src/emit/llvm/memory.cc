#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Intrinsics.h>

#include <algorithm>

#include "emit/llvm/kernel_emitter.h"
#include "emit/llvm/masks.h"

namespace heddle::emit {

using kernel::Space;
using llvm::Value;

namespace {

constexpr int64_t kMaxRegisters = 1 << 16;

int64_t elements(const kernel::Buffer& buffer) {
  int64_t count = 1;
  for (int64_t extent : buffer.extents) {
    if (extent < 0 || extent > kMaxRegisters) return -1;
    count *= extent;
    if (count > kMaxRegisters) return -1;
  }
  return count;
}

}  // namespace

Value* KernelEmitter::to_memory(Type type, Value* value) {
  return type == Type::pred ? b_.CreateZExt(value, like(b_.getInt8Ty(), value)) : value;
}

Value* KernelEmitter::from_memory(Type type, Value* value) {
  return type == Type::pred ? b_.CreateICmpNE(value, int_constant(value->getType(), 0)) : value;
}

Value* KernelEmitter::all_lanes(Value* mask) {
  if (mask) return mask;
  auto* type = llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(lanes_));
  return llvm::Constant::getAllOnesValue(type);
}

// The stack variable of one element of a register buffer (in all lanes).
llvm::AllocaInst* KernelEmitter::register_slot(kernel::BufferId id, const ExprId* indices) {
  const kernel::Buffer& buffer = kernel_.buffer(id);
  int64_t count = elements(buffer), element = 0;
  if (count < 0) {
    fail("register buffer {} is too large or of run-time extent", buffer.name);
    return nullptr;
  }
  for (size_t i = 0; i < buffer.extents.size(); ++i) {
    Val index = eval(indices[i]);
    auto* number = llvm::dyn_cast<llvm::ConstantInt>(index.v);
    int64_t at = number && index.uniform() ? number->getSExtValue() : -1;
    if (at < 0 || at >= buffer.extents[i]) {
      fail("index {} of register buffer {}: wanted a constant below {}", i, buffer.name,
           buffer.extents[i]);
      return nullptr;
    }
    element = element * buffer.extents[i] + at;
  }
  auto& slots = registers_[id.index()];
  slots.resize(static_cast<size_t>(count));
  llvm::AllocaInst*& slot = slots[static_cast<size_t>(element)];
  if (!slot) {
    llvm::Type* type = value_type(b_.getContext(), buffer.type);
    if (buffer.lanes > 0) {
      type = llvm::FixedVectorType::get(type, static_cast<unsigned>(buffer.lanes));
    }
    llvm::BasicBlock& entry = function_->getEntryBlock();
    llvm::IRBuilder<> front(&entry, entry.begin());
    slot = front.CreateAlloca(type);
  }
  return slot;
}

Val KernelEmitter::load_register(const Expr& expr) {
  const kernel::Buffer& buffer = kernel_.buffer(expr.buffer);
  Val result;
  result.level = top();
  result.pinned = true;
  result.bounds = Bounds::of(expr.type);
  llvm::AllocaInst* slot = register_slot(expr.buffer, expr.operands.data());
  if (buffer.lanes != 0 && buffer.lanes != lanes_) {
    fail("register buffer {} has {} lanes, read where there are {}", buffer.name, buffer.lanes,
         lanes_);
    slot = nullptr;
  }
  if (!slot) return poison(expr.type);
  result.varying = buffer.lanes > 0;
  result.v = b_.CreateLoad(slot->getAllocatedType(), slot);
  if (!expr.guarded) return result;
  size_t rank = buffer.extents.size();
  Val mask = eval(expr.operands[rank]), other = eval(expr.operands[rank + 1]);
  bool lanes = result.varying || !mask.uniform() || !other.uniform();
  Value* loaded = operand(result, expr.type, lanes);
  Value* condition = mask.uniform() ? mask.v : vector(mask, b_.getInt1Ty());
  result.v = b_.CreateSelect(condition, loaded, operand(other, expr.type, lanes));
  result.varying = lanes;
  return result;
}

// One element for all lanes. With a mask it is read if any lane is on.
Val KernelEmitter::load_uniform(const Expr& expr, const Address& address, const Val* mask,
                                const Val* other) {
  Val result;
  llvm::Type* type = memory_type(b_.getContext(), expr.type);
  llvm::Align align(static_cast<uint64_t>(address.alignment));
  auto read = [&] {
    return from_memory(expr.type, b_.CreateAlignedLoad(type, address.pointer, align));
  };
  if (!mask) {
    result.v = read();
    return result;
  }
  Value* lanes = mask->uniform() ? nullptr : vector(*mask, b_.getInt1Ty());
  if (lanes && mask_) lanes = b_.CreateAnd(lanes, mask_);
  Value* wanted = mask->v;
  if (lanes) wanted = b_.CreateOrReduce(lanes);
  if (!lanes && other->uniform()) {
    result.v = if_else(wanted, other->v, read);
    return result;
  }
  Val scalar;
  scalar.v = if_else(wanted, nullptr, read);
  scalar.level = top();
  result.varying = true;
  result.v = b_.CreateSelect(lanes ? lanes : mask->v, operand(scalar, expr.type, true),
                             operand(*other, expr.type, true));
  return result;
}

// A condition that all lanes have in common and one that is a constant of each lane, both of which
// must hold; none: the mask is neither constant nor such a pair.
std::optional<KernelEmitter::SplitMask> KernelEmitter::split_mask(ExprId id) {
  const Expr& expr = kernel_.expr(id);
  if (expr.op != Op::and_) {
    const Val x = eval(id);
    if (x.uniform()) return SplitMask{x.v, nullptr};
    if (x.varying && llvm::isa<llvm::Constant>(x.v)) return SplitMask{nullptr, x.v};
    return std::nullopt;
  }
  const auto a = split_mask(expr.operands[0]), b = split_mask(expr.operands[1]);
  if (!a || !b) return std::nullopt;
  auto both = [&](Value* x, Value* y) { return x && y ? b_.CreateAnd(x, y) : x ? x : y; };
  return SplitMask{both(a->uniform, b->uniform), both(a->pattern, b->pattern)};
}

// The value of `read` if the condition holds, else `other` (null: zero).
Value* KernelEmitter::if_else(Value* condition, Value* other, const std::function<Value*()>& read) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* then = llvm::BasicBlock::Create(b_.getContext(), "", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "", function_);
  b_.CreateCondBr(condition, then, after);
  b_.SetInsertPoint(then);
  Value* loaded = read();
  llvm::BasicBlock* end = b_.GetInsertBlock();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
  llvm::PHINode* phi = b_.CreatePHI(loaded->getType(), 2);
  phi->addIncoming(loaded, end);
  phi->addIncoming(other ? other : llvm::Constant::getNullValue(loaded->getType()), before);
  return phi;
}

Val KernelEmitter::load(const Expr& expr) {
  const kernel::Buffer& buffer = kernel_.buffer(expr.buffer);
  if (buffer.space == Space::reg) return load_register(expr);
  if (buffer.space == Space::fragment) {
    fail("buffer {}: fragments are for GPUs", buffer.name);
    return poison(expr.type);
  }
  size_t rank = buffer.extents.size();
  Val mask, other;
  bool guarded = expr.guarded;
  if (guarded) {
    mask = eval(expr.operands[rank]);
    other = eval(expr.operands[rank + 1]);
    if (auto* known = llvm::dyn_cast<llvm::Constant>(mask.v)) {
      if (known->isZeroValue()) {
        other.level = std::max(other.level, mask.level);  // another copy may have another mask
        return other;
      }
      if (known->isAllOnesValue()) guarded = false;
    }
  }
  Address from = address(expr.buffer, expr.operands.data());
  // `in` buffers do not change while a kernel runs: the value may be kept in its scope.
  bool fixed = buffer.space == Space::global && buffer.access == kernel::Access::in;
  bool lanes = from.offsets || from.lane_bytes != 0;
  Val result;
  Value** known = nullptr;  // the same place was read before, by any expression
  if (fixed && !guarded && !from.pinned && (!mask_ || !lanes)) {
    int level = std::max(from.place_level, block_level());
    known = &scopes_[static_cast<size_t>(level)].loads[from.place];
  }
  if (known && *known) {
    result.v = *known;
    result.varying = lanes;
  } else if (!lanes) {
    result = load_uniform(expr, from, guarded ? &mask : nullptr, guarded ? &other : nullptr);
  } else {
    Value* active = mask_;
    Value* fill = nullptr;
    if (guarded) {
      // Even with all lanes off, processors take hundreds of cycles for an unmapped address.
      if (mask.uniform() && from.lane_bytes > 0)
        from.pointer = b_.CreateSelect(mask.v, from.pointer, base_pointer(expr.buffer));
      fill = operand(other, expr.type, true);
    }
    result.varying = true;
    std::optional<SplitMask> parts;
    if (guarded && !from.spread.empty()) parts = split_mask(expr.operands[rank]);
    if (guarded && !parts) parts = SplitMask{nullptr, vector(mask, b_.getInt1Ty())};
    if (parts && parts->pattern)
      active = active ? b_.CreateAnd(active, parts->pattern) : parts->pattern;
    auto read = [&] { return load_lanes(expr.type, from, active, fill); };
    result.v = parts && parts->uniform ? if_else(parts->uniform, fill, read) : read();
  }
  if (known) *known = result.v;
  result.bounds = Bounds::of(expr.type);
  result.pinned = !fixed || from.pinned || mask.pinned || other.pinned;
  result.level = std::max({from.level, block_level(), mask.level, other.level});
  if (result.pinned) result.level = top();
  return result;
}

void KernelEmitter::store_register(const Stmt& stmt) {
  const kernel::Buffer& buffer = kernel_.buffer(stmt.buffer);
  llvm::AllocaInst* slot = register_slot(stmt.buffer, stmt.indices.data());
  Val value = eval(stmt.value), mask;
  if (stmt.mask.valid()) mask = eval(stmt.mask);
  if (!slot) return;
  if (buffer.lanes != lanes_) {
    fail("register buffer {} has {} lanes, stored where there are {}", buffer.name, buffer.lanes,
         lanes_);
    return;
  }
  Value* v = operand(value, buffer.type, lanes_ > 0);
  Value* active = lanes_ > 0 ? mask_ : nullptr;
  if (mask.v) {
    Value* wanted = lanes_ > 0 ? vector(mask, b_.getInt1Ty()) : mask.v;
    active = active ? b_.CreateAnd(active, wanted) : wanted;
  }
  if (active && !all_true(active)) {
    v = b_.CreateSelect(active, v, b_.CreateLoad(slot->getAllocatedType(), slot));
  }
  b_.CreateStore(v, slot);
}

void KernelEmitter::store(const Stmt& stmt) {
  const kernel::Buffer& buffer = kernel_.buffer(stmt.buffer);
  if (buffer.space == Space::reg) return store_register(stmt);
  if (buffer.space == Space::fragment)
    return fail("buffer {}: fragments are for GPUs", buffer.name);
  Val value = eval(stmt.value), mask;
  if (stmt.mask.valid()) {
    mask = eval(stmt.mask);
    if (auto* known = llvm::dyn_cast<llvm::Constant>(mask.v)) {
      if (known->isZeroValue()) return;
      if (known->isAllOnesValue()) mask = Val();
    }
  }
  Address to = address(stmt.buffer, stmt.indices.data());
  if (lanes_ == 0) {
    auto write = [&] {
      Value* v = to_memory(buffer.type, value.v);
      b_.CreateAlignedStore(v, to.pointer, llvm::Align(static_cast<uint64_t>(to.alignment)));
    };
    if (mask.v) {
      guarded(mask.v, write);
    } else {
      write();
    }
    return;
  }
  Value* active = mask_;
  if (mask.v) {
    Value* wanted = vector(mask, b_.getInt1Ty());
    active = active ? b_.CreateAnd(active, wanted) : wanted;
  }
  store_lanes(stmt, buffer.type, to, operand(value, buffer.type, true), active);
}

void KernelEmitter::prefetch(const Stmt& stmt) {
  Address where = address(stmt.buffer, stmt.indices.data());
  auto one = [&](Value* pointer) {
    // Locality 3 is every cache, 1 the last one.
    int locality = 4 - std::clamp(stmt.level, 1, 3);
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                       {pointer, b_.getInt32(stmt.for_write),
                        b_.getInt32(static_cast<uint32_t>(locality)), b_.getInt32(1)});
  };
  if (!where.offsets) return one(where.pointer);
  Value* pointers = lane_pointers(where, kernel_.buffer(stmt.buffer).type);
  for (int i = 0; i < lanes_; ++i) one(b_.CreateExtractElement(pointers, static_cast<uint64_t>(i)));
}

// A CPU copies synchronously, lane by lane.
void KernelEmitter::copy(const Stmt& stmt) {
  Type type = kernel_.buffer(stmt.buffer).type;
  Address to = address(stmt.buffer, stmt.indices.data());
  Address from = address(stmt.source, stmt.source_indices.data());
  auto align = [](const Address& at) { return llvm::Align(static_cast<uint64_t>(at.alignment)); };
  auto bytes = static_cast<uint64_t>(stmt.count * tensor::type_bytes(type));
  if (lanes_ == 0) {
    b_.CreateMemCpy(to.pointer, align(to), from.pointer, align(from), bytes);
    return;
  }
  Value *targets = lane_pointers(to, type), *sources = lane_pointers(from, type);
  auto each = [](const Address& at) {
    return llvm::Align(static_cast<uint64_t>(at.element_alignment));
  };
  for (int i = 0; i < lanes_; ++i) {
    auto lane = static_cast<uint64_t>(i);
    auto move = [&] {
      b_.CreateMemCpy(b_.CreateExtractElement(targets, lane), each(to),
                      b_.CreateExtractElement(sources, lane), each(from), bytes);
    };
    if (all_true(mask_)) {
      move();
    } else {
      guarded(b_.CreateExtractElement(mask_, lane), move);
    }
  }
}

}  // namespace heddle::emit
