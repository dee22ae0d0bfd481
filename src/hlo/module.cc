#include "hlo/module.h"

#include <algorithm>
#include <unordered_set>

#include "hlo/names.h"

namespace heddle::hlo {
namespace {

// Appends the computations reachable from `start`, callees first; `done` holds those already
// appended. A cycle (in a broken module) is cut at its back edge.
void append_post_order(Computation* start, std::unordered_set<const Computation*>& done,
                       std::vector<Computation*>& out) {
  struct Frame {
    Computation* computation;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  auto open = [&](Computation* computation) {
    if (!done.insert(computation).second) return;
    Frame frame{computation, {}, 0};
    for (const Instr* instr : computation->instrs())
      frame.callees.insert(frame.callees.end(), instr->called().begin(), instr->called().end());
    stack.push_back(std::move(frame));
  };
  open(start);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next < frame.callees.size()) {
      open(frame.callees[frame.next++]);  // may move the stack: `frame` is invalid from here
      continue;
    }
    out.push_back(frame.computation);
    stack.pop_back();
  }
}

}  // namespace

std::vector<Computation*> Module::post_order() const {
  std::vector<Computation*> order;
  std::unordered_set<const Computation*> done;
  order.reserve(computations_.size());
  // The entry is held back so that it comes last, even after unreachable computations.
  std::vector<Computation*> reached;
  if (entry_) append_post_order(entry_, done, reached);
  if (!reached.empty()) reached.pop_back();
  order = std::move(reached);
  for (const auto& computation : computations_) append_post_order(computation.get(), done, order);
  if (entry_) order.push_back(entry_);
  return order;
}

Computation* Module::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

Computation* Module::add_computation(std::string_view name) {
  auto computation = std::make_unique<Computation>();
  computation->name_ = unique_name(by_name_, next_suffix_, name);
  computation->id_ = next_id_++;
  computation->module_ = this;
  Computation* result = computation.get();
  by_name_.emplace(result->name_, result);
  computations_.push_back(std::move(computation));
  return result;
}

std::unique_ptr<Module> Module::clone() const {
  auto copy = std::make_unique<Module>(name_);
  std::unordered_map<const Computation*, Computation*> computations;
  for (const auto& original : computations_) {
    Computation* computation = copy->add_computation(original->name_);
    computation->id_ = original->id_;
    computations.emplace(original.get(), computation);
  }
  for (const auto& original : computations_)
    computations.at(original.get())->copy_instrs(*original, /*keep_ids=*/true, computations);
  copy->entry_ = entry_ ? computations.at(entry_) : nullptr;
  copy->next_id_ = next_id_;
  copy->next_suffix_ = next_suffix_;
  copy->is_scheduled = is_scheduled;
  copy->input_output_alias = input_output_alias;
  copy->entry_layout = entry_layout;
  copy->replica_count = replica_count;
  copy->num_partitions = num_partitions;
  copy->states = states;
  copy->symbols = symbols;
  copy->header = header;
  return copy;
}

Computation* Module::clone_computation(const Computation& from, std::string_view name) {
  std::vector<Computation*> originals;
  std::unordered_set<const Computation*> done;
  // `from` is only read; append_post_order takes and returns pointers to non-const.
  append_post_order(const_cast<Computation*>(&from), done, originals);
  std::unordered_map<const Computation*, Computation*> computations;
  for (Computation* original : originals) {
    const bool named = original == &from && !name.empty();
    Computation* copy = add_computation(named ? name : std::string_view(original->name_));
    computations.emplace(original, copy);
    copy->copy_instrs(*original, /*keep_ids=*/false, computations);
  }
  return computations.at(&from);
}

void Module::remove_computation(Computation* computation) {
  HEDDLE_CHECK(computation->module_ == this && computation != entry_ && computation->callers_ == 0,
               "{} is still needed", computation->name_);
  for (const Instr* instr : computation->instrs())
    for (Computation* called : instr->called_) --called->callers_;
  by_name_.erase(computation->name_);
  std::erase_if(computations_, [&](const auto& c) { return c.get() == computation; });
}

int64_t Module::remove_dead_computations() {
  if (!entry_) return 0;
  std::vector<Computation*> reached;
  std::unordered_set<const Computation*> live;
  append_post_order(entry_, live, reached);
  for (const auto& computation : computations_) {
    if (live.contains(computation.get())) continue;
    by_name_.erase(computation->name_);
    for (const Instr* instr : computation->instrs())
      for (Computation* called : instr->called_) --called->callers_;
  }
  return static_cast<int64_t>(
      std::erase_if(computations_, [&](const auto& c) { return !live.contains(c.get()); }));
}

}  // namespace heddle::hlo
