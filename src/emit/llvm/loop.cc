#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include <algorithm>
#include <optional>

#include "emit/llvm/interleave.h"
#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

using llvm::Value;

namespace {

constexpr int64_t kMaxUnrolled = 4096;  // copies of one loop
constexpr int kMaxUnroll = 32;          // bodies per iteration; it is only a hint
constexpr int kMaxLanes = 64;

std::optional<int64_t> number_of(Value* v) {
  auto* number = llvm::dyn_cast<llvm::ConstantInt>(v);
  if (!number) return std::nullopt;
  return number->getSExtValue();
}

}  // namespace

void KernelEmitter::emit_loop(const Range& range, const std::function<void(const Val&)>& body) {
  auto* before = b_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b_.getContext(), "", function_);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "", function_);
  llvm::Instruction* entry =
      range.may_be_empty ? b_.CreateCondBr(b_.CreateICmpSLT(range.start, range.end), loop, after)
                         : b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* counter = b_.CreatePHI(b_.getInt64Ty(), 2);
  counter->addIncoming(range.start, before);
  {
    Inside inside(*this, ScopeKind::loop, entry);
    Val value;
    value.v = counter;
    value.level = top();
    value.bounds = range.bounds;
    value.multiple = number_of(range.start).value_or(1) % range.step == 0 ? range.step : 1;
    body(value);
  }
  // No wrap: the counter stays below end, and step is small against 2^63.
  Value* next =
      b_.CreateAdd(counter, b_.getInt64(static_cast<uint64_t>(range.step)), "", true, true);
  counter->addIncoming(next, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpSLT(next, range.end), loop, after);
  b_.SetInsertPoint(after);
}

void KernelEmitter::copy_of_body(const Stmt& stmt, Binding binding) {
  Inside inside(*this, ScopeKind::straight);
  binding.level = top();
  bindings_[stmt.var.index()] = binding;
  block(stmt.body);
}

void KernelEmitter::unrolled_loop(const Stmt& stmt) {
  Val extent = eval(stmt.extent);
  std::optional<int64_t> count = number_of(extent.v);
  if (!count || !extent.uniform()) return fail("the extent of an unrolled loop is not constant");
  if (*count > kMaxUnrolled) return fail("an unrolled loop of {} copies", *count);
  const int64_t most = side_by_side_;
  const int64_t groups = mixes_copies(stmt) ? (*count + most - 1) / most : *count;
  for (int64_t g = 0; g < groups; ++g) {
    Interleaver interleaver(b_.GetInsertBlock());
    for (int64_t i = *count * g / groups; i < *count * (g + 1) / groups && error_.empty(); ++i) {
      copy_of_body(stmt, {Binding::Kind::constant, i, {}, {}, 0});
      interleaver.copy_ends(b_.GetInsertBlock());
    }
    if (error_.empty()) interleaver.run();
  }
}

// Whether to interleave the copies: vectors of one row that compute functions. Tiles of products
// need all registers.
bool KernelEmitter::mixes_copies(const Stmt& stmt) const {
  if (lanes_ != 0 || stmt.body.size() != 1) return false;
  const Stmt& vector = stmt.body[0];
  if (vector.kind != kernel::StmtKind::loop || vector.loop != kernel::LoopKind::vector)
    return false;
  size_t slots = 0;
  for (const auto& buffer : registers_) slots += buffer.size();
  return slots <= 16 && has_long_chain(kernel_, vector.body) &&
         reads_nothing_stored(kernel_, vector.body);
}

void KernelEmitter::serial_loop(const Stmt& stmt) {
  Val extent = eval(stmt.extent);
  if (!extent.uniform()) return fail("the extent of a loop differs between lanes");
  std::optional<int64_t> count = number_of(extent.v);
  int64_t unroll = std::clamp(stmt.unroll, 1, kMaxUnroll);
  if (count) {
    if (*count <= 0) return;
    if (*count == 1) return copy_of_body(stmt, {Binding::Kind::constant, 0, {}, {}, 0});
    unroll = std::min(unroll, *count);
  }
  Value *zero = b_.getInt64(0), *step = b_.getInt64(static_cast<uint64_t>(unroll));
  Value* rest = unroll == 1 ? zero : b_.CreateSRem(extent.v, step);
  Value* main = b_.CreateSub(extent.v, rest);
  Bounds bounds{0, std::max<int64_t>(extent.bounds.high, 1) - 1};
  Range range{zero, main, unroll, bounds, !count};
  emit_loop(range, [&](const Val& base) {
    for (int64_t i = 0; i < unroll && error_.empty(); ++i) {
      copy_of_body(stmt, {Binding::Kind::loop, i, base, {}, 0});
    }
  });
  if (unroll == 1) return;
  if (count) {
    int64_t first = *count - *count % unroll;
    for (int64_t i = first; i < *count && error_.empty(); ++i) {
      copy_of_body(stmt, {Binding::Kind::constant, i, {}, {}, 0});
    }
    return;
  }
  emit_loop({main, extent.v, 1, bounds, true},
            [&](const Val& base) { copy_of_body(stmt, {Binding::Kind::loop, 0, base, {}, 0}); });
}

// One vector of iterations, from base + offset; the loop's variable is linear over the lanes.
void KernelEmitter::vector_body(const Stmt& stmt, const Val& base, int64_t offset, Value* mask) {
  Binding binding{Binding::Kind::loop, offset, base, {}, 0};
  binding.base.stride = 1;
  // A constant base is valid in this copy only; but a loop of one vector has only that base.
  bool only = !mask && llvm::isa<llvm::Constant>(base.v) && stmt.lanes == base.bounds.high + 1;
  if (llvm::isa<llvm::Constant>(base.v) && !only) binding.base.level = top() + 1;
  int level = only ? 0 : top() + 1;
  Value* outer = mask_;
  mask_ = mask;
  {
    Inside inside(*this, ScopeKind::straight);
    binding.level = level;
    bindings_[stmt.var.index()] = binding;
    block(stmt.body);
  }
  mask_ = outer;
}

// Functions are long chains: several interleaved vectors per step keep the processor busy; used if
// the loop divides evenly, or is so long that its remainder does not matter.
int64_t KernelEmitter::vectors_a_step(const Stmt& stmt, std::optional<int64_t> full) const {
  if (lanes_ > isa_.simd_bits / 32) return 1;  // several vector registers already
  if (!has_long_chain(kernel_, stmt.body) || !reads_nothing_stored(kernel_, stmt.body)) return 1;
  const int64_t most = side_by_side_;
  if (!full) return most;
  const int64_t vectors = *full / lanes_;
  for (int64_t count = most; count > 1; --count)
    if (vectors % count == 0) return count;
  return vectors > 4 * most ? most : std::min({vectors, most, int64_t{2}});
}

// The full vectors: `full` iterations, a multiple of the lanes.
void KernelEmitter::vector_main(const Stmt& stmt, const Val& extent, Value* full) {
  std::optional<int64_t> count = number_of(full);
  int64_t lanes = lanes_, unroll = vectors_a_step(stmt, count);
  Val base;
  base.bounds = {0, std::max<int64_t>(extent.bounds.high, 1) - 1};
  auto straight = [&](int64_t first) {
    base.v = b_.getInt64(static_cast<uint64_t>(first));
    base.multiple = first;
    vector_body(stmt, base, 0, nullptr);
  };
  const bool mixes = unroll > 1;
  auto loop = [&](Value* start, Value* end, int64_t copies, bool may_be_empty) {
    emit_loop({start, end, lanes * copies, base.bounds, may_be_empty}, [&](const Val& counter) {
      Interleaver interleaver(b_.GetInsertBlock());
      for (int64_t i = 0; i < copies && error_.empty(); ++i) {
        Val at = counter;
        at.multiple = lanes;  // full vectors start at multiples of the lanes
        vector_body(stmt, at, i * lanes, nullptr);
        interleaver.copy_ends(b_.GetInsertBlock());
      }
      if (mixes && error_.empty()) interleaver.run();
    });
  };
  if (!count) {
    Value* zero = b_.getInt64(0);
    if (unroll == 1) return loop(zero, full, 1, true);
    Value* rest = b_.CreateSRem(full, b_.getInt64(static_cast<uint64_t>(lanes * unroll)));
    Value* main = b_.CreateSub(full, rest);
    loop(zero, main, unroll, true);
    return loop(main, full, 1, true);
  }
  if (*count < lanes) return;
  int64_t main = *count - *count % (lanes * unroll);
  if (main == lanes * unroll) {
    Interleaver interleaver(b_.GetInsertBlock());
    for (int64_t i = 0; i < main && error_.empty(); i += lanes) {
      straight(i);
      interleaver.copy_ends(b_.GetInsertBlock());
    }
    if (mixes && error_.empty()) interleaver.run();
  } else {
    loop(b_.getInt64(0), b_.getInt64(static_cast<uint64_t>(main)), unroll, false);
  }
  if (*count - main > 2 * lanes)
    return loop(b_.getInt64(static_cast<uint64_t>(main)),
                b_.getInt64(static_cast<uint64_t>(*count)), 1, false);
  for (int64_t i = main; i < *count && error_.empty(); i += lanes) straight(i);
}

void KernelEmitter::vector_loop(const Stmt& stmt) {
  if (lanes_ != 0) return fail("a vector loop inside a vector loop");
  if (stmt.lanes < 1 || stmt.lanes > kMaxLanes)
    return fail("a vector loop of {} lanes", stmt.lanes);
  Val extent = eval(stmt.extent);
  if (!extent.uniform()) return fail("the extent of a vector loop differs between lanes");
  if (extent.bounds.high <= 0) return;
  lanes_ = stmt.lanes;
  Value *rest, *full;
  {
    At at(*this, extent.level);
    rest = b_.CreateSRem(extent.v, b_.getInt64(static_cast<uint64_t>(lanes_)));
    full = b_.CreateSub(extent.v, rest);
  }
  vector_main(stmt, extent, full);
  // The tail: the lanes below `rest`.
  Val base;
  base.v = full;
  base.bounds = {0, extent.bounds.high - 1};
  base.multiple = number_of(full).value_or(lanes_);
  base.level = extent.level;
  std::vector<llvm::Constant*> steps;
  for (int i = 0; i < lanes_; ++i) steps.push_back(b_.getInt32(static_cast<uint32_t>(i)));
  Value* lane_numbers = llvm::ConstantVector::get(steps);
  auto tail = [&] {
    Value* limit =
        b_.CreateVectorSplat(static_cast<unsigned>(lanes_), b_.CreateTrunc(rest, b_.getInt32Ty()));
    vector_body(stmt, base, 0, b_.CreateICmpULT(lane_numbers, limit));
  };
  if (std::optional<int64_t> count = number_of(rest)) {
    if (*count > 0) tail();
  } else {
    guarded(b_.CreateICmpSGT(rest, b_.getInt64(0)), tail);
  }
  lanes_ = 0;
}

}  // namespace heddle::emit
