// Computation: the order of its instructions, and removal of dead ones.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/module.h"

namespace heddle::hlo {
namespace {

bool computation_has_effect(const Computation& root) {
  std::vector<const Computation*> stack{&root};
  std::unordered_set<const Computation*> seen{&root};
  while (!stack.empty()) {
    const Computation* computation = stack.back();
    stack.pop_back();
    for (const Instr* instr : computation->instrs()) {
      const bool called_decides = instr->is(Opcode::custom_call) || !instr->called().empty();
      if (!called_decides && has_effect(*instr)) return true;
      if (!called_decides) continue;
      if (instr->is(Opcode::custom_call) ? instr->attrs_as<CustomCallAttrs>().has_side_effect
                                         : !has_trait(instr->opcode(), Trait::pure))
        return true;
      for (const Computation* called : instr->called())
        if (seen.insert(called).second) stack.push_back(called);
    }
  }
  return false;
}

}  // namespace

bool has_effect(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::partition_id:
    case Opcode::replica_id:
      return false;
    case Opcode::custom_call:
      if (instr.attrs_as<CustomCallAttrs>().has_side_effect) return true;
      break;
    default:
      if (!has_trait(instr.opcode(), Trait::pure)) return true;
  }
  return std::any_of(instr.called().begin(), instr.called().end(),
                     [](const Computation* c) { return computation_has_effect(*c); });
}

// Readers may arrive on several threads; the first one does the work for all.
void Computation::settle() const {
  std::lock_guard lock(settle_mutex_);
  if (!unsettled_.load(std::memory_order_relaxed)) return;
  compact_order();
  if (unsorted_) sort_order();
  unsorted_ = false;
  unsettled_.store(false, std::memory_order_release);
}

void Computation::compact_order() const {
  std::erase(order_, nullptr);
  for (size_t i = 0; i < order_.size(); ++i) order_[i]->place_ = i;
}

// Depth-first over operands and control predecessors in the present order: an instruction that is
// placed correctly stays, one that comes too late moves to just before its first user.
bool Computation::sort_order() const {
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(order_.size(), kNew);
  std::vector<Instr*> sorted;
  sorted.reserve(order_.size());
  struct Frame {
    Instr* instr;
    size_t next;
  };
  std::vector<Frame> stack;
  bool acyclic = true;
  for (Instr* start : order_) {
    if (state[start->place_] != kNew) continue;
    stack.push_back({start, 0});
    state[start->place_] = kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const auto& operands = frame.instr->operands_;
      const auto& before = frame.instr->control_predecessors_;
      if (frame.next == operands.size() + before.size()) {
        state[frame.instr->place_] = kDone;
        sorted.push_back(frame.instr);
        stack.pop_back();
        continue;
      }
      Instr* next = frame.next < operands.size() ? operands[frame.next]
                                                 : before[frame.next - operands.size()];
      ++frame.next;
      if (next->parent_ != this) continue;  // another computation's: the verifier reports it
      if (state[next->place_] == kOpen) acyclic = false;
      if (state[next->place_] != kNew) continue;
      state[next->place_] = kOpen;
      stack.push_back({next, 0});
    }
  }
  order_ = std::move(sorted);
  for (size_t i = 0; i < order_.size(); ++i) order_[i]->place_ = i;
  return acyclic;
}

void Computation::sort() {
  compact_order();
  HEDDLE_CHECK(sort_order(), "{} has a cycle", name_);
  unsorted_ = false;
  unsettled_.store(false, std::memory_order_release);
}

void Computation::reorder(std::vector<Instr*> order) {
  HEDDLE_CHECK(order.size() == instrs().size(), "{}: {} instructions in the new order, not {}",
               name_, order.size(), order_.size());
  std::vector<bool> seen(order.size());
  for (const Instr* instr : order) {
    HEDDLE_CHECK(instr->parent_ == this && !seen[instr->place_], "{}: not a permutation", name_);
    for (const auto* list : {&instr->operands_, &instr->control_predecessors_})
      for (const Instr* before : *list)
        HEDDLE_CHECK(seen[before->place_], "{}: {} before {}", name_, instr->name_, before->name_);
    seen[instr->place_] = true;
  }
  order_ = std::move(order);
  for (size_t i = 0; i < order_.size(); ++i) order_[i]->place_ = i;
}

int64_t Computation::remove_dead() {
  const std::vector<Instr*> all = instrs();
  std::vector<bool> live(all.size());
  // Backwards, users before operands; control successors also come later.
  for (size_t i = all.size(); i-- > 0;) {
    const Instr* instr = all[i];
    if (!live[i]) live[i] = instr == root_ || instr->is(Opcode::parameter) || has_effect(*instr);
    if (!live[i]) continue;
    for (const auto* list : {&instr->operands_, &instr->control_predecessors_})
      for (const Instr* before : *list) live[before->place_] = true;
  }
  int64_t removed = 0;
  // Users first again, so that each instruction has no users left when it is removed.
  for (size_t i = all.size(); i-- > 0;) {
    if (live[i]) continue;
    unlink_operands(all[i]);
    drop(all[i]);
    ++removed;
  }
  return removed;
}

}  // namespace heddle::hlo
