// A fused computation, in an order in which every kernel stands behind what it reads.
#include <algorithm>
#include <functional>
#include <queue>

#include "fuse/groups.h"

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

  void run() {
    new_ = module_->add_computation(old_->name() + ".fused");
    std::vector<std::vector<size_t>> readers(units_.size());
    std::vector<size_t> waiting(units_.size(), 0);
    for (size_t u = 0; u < units_.size(); ++u) {
      std::unordered_set<size_t> needs;
      for (Instr* operand : outside_operands(units_[u])) needs.insert(unit_of_.at(operand));
      needs.erase(u);
      waiting[u] = needs.size();
      for (size_t need : needs) readers[need].push_back(u);
    }
    // The old order decides among those that are ready.
    using Entry = std::pair<size_t, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    auto key = [&](size_t u) { return index_.at(units_[u].members.back()); };
    for (size_t u = 0; u < units_.size(); ++u)
      if (waiting[u] == 0) ready.emplace(key(u), u);
    size_t done = 0;
    while (!ready.empty()) {
      size_t u = ready.top().second;
      ready.pop();
      emit(units_[u]);
      ++done;
      for (size_t reader : readers[u])
        if (--waiting[reader] == 0) ready.emplace(key(reader), reader);
    }
    HEDDLE_CHECK(done == units_.size(), "the cover has a cycle");
    for (Instr* instr : old_->instrs())
      for (Instr* before : instr->control_predecessors())
        if (value_.count(instr) && value_.count(before) &&
            value_.at(before)->name() == before->name())
          new_->add_control_edge(value_.at(before), value_.at(instr));
    new_->set_root(value_.at(old_->root()));
    if (module_->entry() == old_) module_->set_entry(new_);
    for (const auto& [caller, i] : covered_.callers) caller->parent()->set_called(caller, i, new_);
    module_->remove_computation(old_);
    new_->remove_dead();
    module_->remove_dead_computations();
  }

 private:
  struct Unit {
    std::vector<Instr*> members;
    Group* group;
  };

  void add_unit(std::vector<Instr*> members, Group* group) {
    for (Instr* member : members)
      if (!group || !group->copies.count(member)) unit_of_[member] = units_.size();
    units_.push_back({std::move(members), group});
  }

  std::vector<Instr*> outside_operands(const Unit& unit) const {
    std::unordered_set<const Instr*> inside(unit.members.begin(), unit.members.end());
    std::vector<Instr*> result;
    for (Instr* member : unit.members) {
      for (Instr* operand : member->operands())
        if (!inside.count(operand)) result.push_back(operand);
      for (Instr* before : member->control_predecessors())
        if (!inside.count(before) && unit_of_.count(before)) result.push_back(before);
    }
    return result;
  }

  // Somebody reads the value who has neither it nor a copy of it inside.
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

  void emit(const Unit& unit) {
    if (units_with_.empty()) {
      for (size_t u = 0; u < units_.size(); ++u)
        for (Instr* member : units_[u].members) units_with_[member].push_back(u);
    }
    size_t number = static_cast<size_t>(&unit - units_.data());
    if (!unit.group) return emit_alone(unit.members[0]);
    hlo::Module* module = module_;
    Computation* body = module->add_computation("fused");
    std::unordered_map<const Instr*, Instr*> copies;
    std::vector<Instr*> operands;
    auto value_of = [&](Instr* operand) {
      auto known = copies.find(operand);
      if (known != copies.end()) return known->second;
      Instr* copy = nullptr;
      if (operand->is(Opcode::constant) && operand->shape().is_scalar()) {
        copy = body->add(Opcode::constant, operand->shape(), {}, operand->attrs());
      } else {
        hlo::ParameterAttrs attrs{static_cast<int64_t>(operands.size())};
        copy = body->add(Opcode::parameter, operand->shape().without_layout(), {}, attrs, {},
                         fmt::format("p{}", attrs.number));
        operands.push_back(value_.at(operand));
      }
      copies.emplace(operand, copy);
      return copy;
    };
    std::vector<Instr*> outputs, views;  // that leave: with bytes of their own, and those of these
    std::unordered_set<const Instr*> leaving;
    for (Instr* member : unit.members) {
      std::vector<Instr*> inner;
      for (Instr* operand : member->operands()) inner.push_back(value_of(operand));
      copies[member] = body->add(member->opcode(), member->shape().without_layout(), inner,
                                 member->attrs(), member->called(), member->name());
      if (!leaves(member, unit, number)) continue;
      (viewed_output(member, leaving) == nullptr ? outputs : views).push_back(member);
      leaving.insert(member);
    }
    if (outputs.empty()) return;  // dead
    std::vector<Instr*> roots;
    std::vector<tensor::Shape> shapes;
    for (Instr* output : outputs) {
      roots.push_back(copies.at(output));
      shapes.push_back(roots.back()->shape());
    }
    bool single = roots.size() == 1;
    body->set_root(single ? roots[0]
                          : body->add(Opcode::tuple, tensor::Shape::make_tuple(shapes), roots));
    body->remove_dead();
    Instr* fusion = new_->add(Opcode::fusion, body->root()->shape(), operands, hlo::FusionAttrs{},
                              {body}, outputs.back()->name());
    for (size_t i = 0; i < outputs.size(); ++i) {
      value_[outputs[i]] =
          single ? fusion
                 : new_->add(Opcode::get_tuple_element, roots[i]->shape(), {fusion},
                             hlo::TupleIndexAttrs{static_cast<int64_t>(i)}, {}, outputs[i]->name());
    }
    for (Instr* view : views)
      value_[view] = new_->add(Opcode::reshape, view->shape(),
                               {value_.at(viewed_output(view, leaving))}, {}, {}, view->name());
  }

  void emit_alone(Instr* instr) {
    std::vector<Instr*> operands;
    for (Instr* operand : instr->operands()) {
      auto known = value_.find(operand);
      if (known == value_.end()) return;  // reads something dead: dead itself
      operands.push_back(known->second);
    }
    Instr* copy = new_->add(instr->opcode(), instr->shape(), operands, instr->attrs(),
                            instr->called(), instr->name());
    copy->annotations() = instr->annotations();
    value_[instr] = copy;
  }

  hlo::Module* module_;
  const Covered& covered_;
  Computation* old_;
  Computation* new_ = nullptr;
  const std::unordered_set<const Instr*>& copies_;
  std::vector<Unit> units_;
  std::unordered_map<const Instr*, size_t> unit_of_, index_;
  std::unordered_map<const Instr*, std::vector<size_t>> units_with_;
  std::unordered_map<const Instr*, Instr*> value_;
};

}  // namespace

void rebuild(const Covered& covered, const std::vector<Group*>& groups,
             const std::unordered_set<const Instr*>& copies) {
  Rebuilder(covered, groups, copies).run();
}

}  // namespace heddle::fuse
