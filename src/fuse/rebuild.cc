// Builds a fused computation in which every kernel comes after its producers.
#include "fuse/rebuild.h"

#include <algorithm>

#include "fuse/graph.h"
#include "fuse/new_fusion.h"

namespace heddle::fuse {

namespace {

class Rebuilder {
 public:
  Rebuilder(const Covered& covered, const std::vector<Group*>& groups,
            const std::unordered_set<const Instr*>& copies)
      : module_(covered.computation->module()),
        covered_(covered),
        old_(covered.computation),
        copies_(copies) {
    for (Group* group : groups) add_unit(group->members, group);
    for (Instr* instr : old_->instrs()) {
      index_.emplace(instr, index_.size());
      if (unit_of_.count(instr) || copies_.count(instr)) continue;
      add_unit({instr}, nullptr);
    }
  }

  // False: the units have no order.
  bool find_order() {
    std::vector<std::vector<Instr*>> kernels;
    std::vector<size_t> key;
    for (const Unit& unit : units_) {
      kernels.push_back(unit.members);
      key.push_back(index_.at(unit.members.back()));
    }
    const auto before = waits_of(*old_, kernels, [&](const Instr* instr) {
      const auto found = unit_of_.find(instr);
      return found == unit_of_.end() ? -1 : static_cast<int>(found->second);
    });
    // Of several units that are ready, the first in the old order comes first.
    order_ = in_order(before, key);
    return order_.size() == units_.size();
  }

  // False: a kernel reads a value that no kernel makes; nothing has changed.
  bool run() {
    new_ = module_->add_computation(old_->name() + ".fused");
    for (int u : order_) {
      if (emit(units_[static_cast<size_t>(u)])) continue;
      module_->remove_computation(new_);
      module_->remove_dead_computations();
      return false;
    }
    for (int u : order_) keep_control_edges(static_cast<size_t>(u));
    new_->set_root(value_.at(old_->root()));
    if (module_->entry() == old_) module_->set_entry(new_);
    for (const auto& [caller, i] : covered_.callers) caller->parent()->set_called(caller, i, new_);
    module_->remove_computation(old_);
    new_->remove_dead();
    module_->remove_dead_computations();
    return true;
  }

 private:
  struct Unit {
    std::vector<Instr*> members;
    Group* group;
    Instr* made = nullptr;        // null: dead
    std::vector<Instr*> earlier;  // of a dead unit: instructions that its dependants wait for
  };

  void add_unit(std::vector<Instr*> members, Group* group) {
    for (Instr* member : members)
      if (!group || !group->copies.count(member)) unit_of_[member] = units_.size();
    units_.push_back({std::move(members), group, nullptr, {}});
  }

  // Control edges of the unit's members become control edges of its instruction.
  void keep_control_edges(size_t number) {
    Unit& unit = units_[number];
    std::vector<Instr*> earlier;
    auto wait_for = [&](const Instr* instr) {
      const auto found = unit_of_.find(instr);
      if (found == unit_of_.end() || found->second == number) return;
      const Unit& other = units_[found->second];
      if (other.made) earlier.push_back(other.made);
      earlier.insert(earlier.end(), other.earlier.begin(), other.earlier.end());
    };
    for (const Instr* member : unit.members) {
      for (const Instr* before : member->control_predecessors()) wait_for(before);
      for (const Instr* operand : member->operands())
        if (!unit.made) wait_for(operand);
    }
    if (!unit.made) unit.earlier = std::move(earlier);
    if (!unit.made) return;
    for (Instr* before : earlier) new_->add_control_edge(before, unit.made);
  }

  // Whether a unit that contains neither the value nor a copy of it reads it.
  bool leaves(const Instr* member, const Unit& unit, size_t number) const {
    if (unit.group->copies.count(member)) return false;
    if (member == old_->root()) return true;
    for (const Instr* user : member->users()) {
      // Every unit that computes the user.
      for (size_t u : units_with_.at(user)) {
        if (u == number) continue;
        const auto& members = units_[u].members;
        if (std::find(members.begin(), members.end(), member) == members.end()) return true;
      }
    }
    return false;
  }

  bool emit(Unit& unit) {
    if (units_with_.empty()) {
      for (size_t u = 0; u < units_.size(); ++u)
        for (Instr* member : units_[u].members) units_with_[member].push_back(u);
    }
    size_t number = static_cast<size_t>(&unit - units_.data());
    if (!unit.group) {
      emit_alone(unit);
      return true;
    }
    NewFusion made(module_, "fused");
    std::vector<Instr*> outputs, views;  // read outside: with separate bytes, and views of these
    std::unordered_set<const Instr*> leaving;
    for (Instr* member : unit.members) {
      std::vector<Instr*> inner;
      for (Instr* operand : member->operands()) inner.push_back(made.inside(operand));
      Instr* copy = made.computation->add(member->opcode(), member->shape().without_layout(), inner,
                                          member->attrs(), member->called(), member->name());
      copy->add_nodes(member->nodes());
      made.values[member] = copy;
      if (!leaves(member, unit, number)) continue;
      (viewed_output(member, leaving) == nullptr ? outputs : views).push_back(member);
      leaving.insert(member);
    }
    if (outputs.empty()) return true;  // dead
    for (const Instr* output : outputs) made.outputs.push_back(made.values.at(output));
    for (Instr*& operand : made.operands) {
      const auto known = value_.find(operand);
      if (known == value_.end()) return false;
      operand = known->second;
    }
    const std::vector<Instr*> values = made.add_to(new_, outputs.back()->name());
    unit.made = values.size() == 1 ? values[0] : values[0]->operand(0);
    for (size_t i = 0; i < outputs.size(); ++i) value_[outputs[i]] = values[i];
    for (Instr* view : views)
      value_[view] = new_->add(Opcode::reshape, view->shape(),
                               {value_.at(viewed_output(view, leaving))}, {}, {}, view->name());
    return true;
  }

  void emit_alone(Unit& unit) {
    Instr* instr = unit.members[0];
    std::vector<Instr*> operands;
    for (Instr* operand : instr->operands()) {
      auto known = value_.find(operand);
      if (known == value_.end()) return;  // reads something dead: dead itself
      operands.push_back(known->second);
    }
    Instr* copy = new_->add(instr->opcode(), instr->shape(), operands, instr->attrs(),
                            instr->called(), instr->name());
    copy->copy_notes(*instr);
    value_[instr] = unit.made = copy;
  }

  hlo::Module* module_;
  const Covered& covered_;
  Computation* old_;
  Computation* new_ = nullptr;
  const std::unordered_set<const Instr*>& copies_;
  std::vector<Unit> units_;
  std::vector<int> order_;
  std::unordered_map<const Instr*, size_t> unit_of_, index_;
  std::unordered_map<const Instr*, std::vector<size_t>> units_with_;
  std::unordered_map<const Instr*, Instr*> value_;
};

// A cover with a group for every operator.
struct Apart {
  explicit Apart(const Covered& covered) {
    const Computation& computation = *covered.computation;
    for (Instr* instr : computation.instrs()) {
      if (!has_kernel(instr) || is_read_in_place(instr)) continue;
      if (instr->users().empty() && instr != computation.root()) continue;
      owned.push_back(std::make_unique<Group>());
      Group* group = owned.back().get();
      if (Instr* filter = transformed_filter(instr)) {
        group->members.push_back(filter);
        group->copies.insert(filter);
        cover.copies.insert(filter);
      }
      group->members.push_back(instr);
      cover.groups.push_back(group);
    }
  }
  // A reshape or bitcast is no work.
  static bool is_read_in_place(const Instr* instr) {
    return instr->is(Opcode::reshape) || instr->is(Opcode::bitcast);
  }
  std::vector<std::unique_ptr<Group>> owned;
  GroupCover cover;
};

}  // namespace

Decision rebuild(const Covered& covered, const GroupCover& cover) {
  Rebuilder rebuilder(covered, cover.groups, cover.copies);
  if (!rebuilder.find_order())
    return Decision::no(kInternalCycle, "kernels of the cover wait for one another");
  if (!rebuilder.run())
    return Decision::no(kInternalCycle, "a kernel of the cover reads what no kernel makes");
  return Decision::yes();
}

void rebuild_first(const Covered& covered, const std::vector<const GroupCover*>& covers,
                   std::vector<Refusal>* refusals) {
  const std::string name = covered.computation->name();
  for (const GroupCover* cover : covers) {
    const Decision decision = rebuild(covered, *cover);
    if (decision) return;
    if (refusals)
      refusals->push_back(
          {name, covered.computation->root()->name(), decision.code(), decision.reason()});
  }
  HEDDLE_CHECK(rebuild(covered, Apart(covered).cover), "{} has a cycle", name);
}

}  // namespace heddle::fuse
