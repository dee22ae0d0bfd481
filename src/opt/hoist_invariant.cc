// hoist_invariant: computes the loop-invariant values of a loop's body once before the loop, and
// passes them through the loop as additional elements of the state.
//
// Not hoisted: movement and values larger than their inputs (a broadcast is free where it is read),
// scalars, and instructions that may not be repeated or moved. Each rewrite leaves fewer operators
// in loops. The values are computed even if the loop never runs: nothing that is hoisted has an
// effect or can fail.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "hlo/loop_trips.h"
#include "opt/loop_state.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

bool is_handed_on(const Instr* part, const Loop& loop) {
  return part->is(Opcode::get_tuple_element) && part->operand(0) == loop.state() &&
         hlo::is_invariant_leaf(loop.instr, part->tuple_index());
}

// Only a view of its operands, or a constant: recomputed by the reader.
bool is_view(const Instr* x) {
  switch (x->opcode()) {
    case Opcode::broadcast:
    case Opcode::constant:
    case Opcode::iota:
    case Opcode::reshape:
    case Opcode::slice:
    case Opcode::get_tuple_element:
      return true;
    default:
      return false;
  }
}

bool may_move(const Instr* x) {
  return is_removable(*x) && x->shape().is_array() && x->control_predecessors().empty() &&
         x->control_successors().empty() && !x->is(Opcode::while_) && !x->is(Opcode::conditional) &&
         !x->is(Opcode::call) && !x->is(Opcode::parameter) && !x->is(Opcode::rng) &&
         !x->is(Opcode::rng_bit_generator) && !x->is(Opcode::rng_get_and_update_state);
}

int64_t bytes_behind(const Instr* x) {
  while (x->is(Opcode::broadcast)) x = x->operand(0);
  return x->shape().is_array() && x->shape().is_static() ? x->shape().bytes() : 0;
}

bool is_worth_it(const Instr* x) {
  if (is_view(x) || !x->shape().is_static()) return false;
  switch (x->opcode()) {
    case Opcode::dot:
    case Opcode::convolution:
    case Opcode::reduce:
    case Opcode::reduce_window:
    case Opcode::sort:
      return true;
    default:
      break;
  }
  if (x->shape().elems() <= 1) return false;
  int64_t read = 0;
  for (const Instr* operand : x->operands()) read += bytes_behind(operand);
  return x->shape().bytes() <= read;
}

// Loop-invariant instructions of the body, in order, including views.
std::vector<Instr*> invariants(const Loop& loop) {
  std::unordered_set<const Instr*> known;
  std::vector<Instr*> found;
  for (Instr* instr : loop.body->instrs()) {
    const auto& operands = instr->operands();
    const bool fixed = is_handed_on(instr, loop) ||
                       (may_move(instr) && std::all_of(operands.begin(), operands.end(),
                                                       [&](Instr* x) { return known.count(x); }));
    if (!fixed) continue;
    known.insert(instr);
    found.push_back(instr);
  }
  return found;
}

class Hoist {
 public:
  explicit Hoist(const Loop& loop) : loop_(loop), outside_(loop.instr->parent()) {}

  bool run(const PassContext& context) {
    const std::vector<Instr*> fixed = invariants(loop_);
    std::unordered_set<const Instr*> moved;
    for (const Instr* x : fixed)
      if (is_worth_it(x)) moved.insert(x);
    for (Instr* x : fixed) {
      if (!moved.count(x)) continue;
      const bool read = x == loop_.body->root() ||
                        std::any_of(x->users().begin(), x->users().end(),
                                    [&](const Instr* user) { return !moved.count(user); });
      if (read && context.allow("hoist_invariant", "out_of_loop")) exported_.push_back(x);
    }
    if (exported_.empty()) return false;
    for (Instr* x : exported_) copy(x);
    grow();
    return true;
  }

 private:
  // The same value before the loop, operands first; no recursion: bodies can be deep.
  Instr* copy(Instr* x) {
    std::vector<Instr*> stack{x};
    while (!stack.empty()) {
      Instr* top = stack.back();
      if (copies_.count(top)) {
        stack.pop_back();
        continue;
      }
      const size_t waiting = stack.size();
      if (top->operands().empty() || top->operand(0) != loop_.state())
        for (Instr* operand : top->operands())
          if (!copies_.count(operand)) stack.push_back(operand);
      if (stack.size() > waiting) continue;
      copies_.emplace(top, copy_one(top));
      stack.pop_back();
    }
    return copies_.at(x);
  }

  Instr* copy_one(const Instr* x) {
    if (x->is(Opcode::get_tuple_element)) return start_of(x->tuple_index());
    std::vector<Instr*> operands;
    for (const Instr* operand : x->operands()) operands.push_back(copies_.at(operand));
    Instr* made = outside_->add(x->opcode(), x->shape(), std::move(operands), x->attrs(),
                                x->called(), x->name());
    made->copy_notes(*x);
    return made;
  }

  Instr* start_of(int64_t element) {
    Instr* init = loop_.instr->operand(0);
    if (init->is(Opcode::tuple)) return init->operand(static_cast<size_t>(element));
    return outside_->add(Opcode::get_tuple_element,
                         init->shape().elements()[static_cast<size_t>(element)], {init},
                         hlo::TupleIndexAttrs{element});
  }

  // Appends the exported values to the state; the body passes them on.
  void grow() {
    std::vector<Shape> elements = loop_.instr->shape().elements();
    std::vector<Instr*> start, next = loop_.body->root()->operands();
    for (size_t i = 0; i < elements.size(); ++i) start.push_back(start_of(static_cast<int64_t>(i)));
    std::vector<Instr*> parts;
    for (Instr* x : exported_) {
      const auto number = static_cast<int64_t>(elements.size());
      elements.push_back(x->shape());
      start.push_back(copies_.at(x));
      parts.push_back(loop_.body->add(Opcode::get_tuple_element, x->shape(), {loop_.state()},
                                      hlo::TupleIndexAttrs{number}));
      next.push_back(parts.back());
    }
    const Shape state = Shape::make_tuple(elements);
    loop_.body->set_root(loop_.body->add(Opcode::tuple, state, next));
    for (Computation* computation : {loop_.condition, loop_.body})
      computation->parameters()[0]->set_shape(state);
    for (size_t i = 0; i < exported_.size(); ++i)
      loop_.body->replace_all_uses(exported_[i], parts[i]);
    loop_.body->remove_dead();
    outside_->replace_operand(loop_.instr, 0, outside_->add(Opcode::tuple, state, start));
    loop_.instr->set_shape(state);
  }

  const Loop& loop_;
  Computation* outside_;
  std::vector<Instr*> exported_;
  std::unordered_map<const Instr*, Instr*> copies_;  // by instruction of the body
};

}  // namespace

Result<bool> hoist_invariant(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  // Inner loops first: a value hoisted out of one may be hoisted out of the next.
  for (const Loop& loop : loops_of_own_state(module)) changed |= Hoist(loop).run(context);
  return changed;
}

}  // namespace heddle::opt
