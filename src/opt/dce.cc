// dce: removes instructions, computations and loop-state elements that no output and no effect
// needs. Parameters of the entry stay: they belong to the caller.
#include <algorithm>
#include <unordered_set>

#include "opt/loop_state.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

// Elements of the state that `from` and its transitive operands read.
void mark_read(const Instr* from, const Instr* state, std::unordered_set<const Instr*>& seen,
               std::vector<size_t>& found) {
  std::vector<const Instr*> stack{from};
  while (!stack.empty()) {
    const Instr* instr = stack.back();
    stack.pop_back();
    if (!seen.insert(instr).second) continue;
    if (instr->is(Opcode::get_tuple_element) && instr->operand(0) == state)
      found.push_back(static_cast<size_t>(instr->tuple_index()));
    for (const auto* list : {&instr->operands(), &instr->control_predecessors()})
      stack.insert(stack.end(), list->begin(), list->end());
  }
}

// Which elements are read outside, by the condition, by an effect, or by the computation of a live
// one.
std::vector<bool> live_elements(const Loop& loop) {
  std::vector<bool> live(loop.size());
  std::vector<size_t> work;
  for (const Instr* user : loop.instr->users())
    work.push_back(static_cast<size_t>(user->tuple_index()));
  std::unordered_set<const Instr*> seen_in_condition, seen_in_body;
  mark_read(loop.condition->root(), loop.condition->parameters()[0], seen_in_condition, work);
  const Instr* state = loop.body->parameters()[0];
  for (const Computation* computation : {loop.condition, loop.body})
    for (const Instr* instr : computation->instrs())
      if (hlo::has_effect(*instr))
        mark_read(instr, computation->parameters()[0],
                  computation == loop.body ? seen_in_body : seen_in_condition, work);
  while (!work.empty()) {
    const size_t element = work.back();
    work.pop_back();
    if (live[element]) continue;
    live[element] = true;
    mark_read(loop.body->root()->operand(element), state, seen_in_body, work);
  }
  return live;
}

template <typename T>
std::vector<T> kept(const std::vector<T>& list, const std::vector<bool>& live) {
  std::vector<T> result;
  for (size_t i = 0; i < list.size(); ++i)
    if (live[i]) result.push_back(list[i]);
  return result;
}

// Renumbers the reads of elements of `state`; reads of dead elements become dead instructions.
void renumber(Instr* state, const std::vector<int64_t>& place) {
  Computation* computation = state->parent();
  for (Instr* read : std::vector<Instr*>(state->users())) {
    const auto old = static_cast<size_t>(read->tuple_index());
    if (place[old] >= 0) {
      read->mutable_attrs_as<hlo::TupleIndexAttrs>().index = place[old];
    } else {
      HEDDLE_CHECK(read->users().empty(), "{} is read", read->name());
      computation->remove(read);
    }
  }
}

void shrink(const Loop& loop, const std::vector<bool>& live) {
  std::vector<int64_t> place(live.size(), -1);
  int64_t next = 0;
  for (size_t i = 0; i < live.size(); ++i)
    if (live[i]) place[i] = next++;
  const Shape state = Shape::make_tuple(kept(loop.instr->shape().elements(), live));

  Instr* root = loop.body->root();
  loop.body->set_root(loop.body->add(Opcode::tuple, state, kept(root->operands(), live)));
  loop.body->remove_dead();
  loop.condition->remove_dead();
  for (Computation* computation : {loop.condition, loop.body}) {
    Instr* parameter = computation->parameters()[0];
    parameter->set_shape(state);
    renumber(parameter, place);
  }

  Computation* outside = loop.instr->parent();
  Instr* init = loop.instr->operand(0);
  std::vector<Instr*> start;
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    start.push_back(init->is(Opcode::tuple)
                        ? init->operand(i)
                        : outside->add(Opcode::get_tuple_element, init->shape().elements()[i],
                                       {init}, hlo::TupleIndexAttrs{static_cast<int64_t>(i)}));
  }
  outside->replace_operand(loop.instr, 0, outside->add(Opcode::tuple, state, start));
  loop.instr->set_shape(state);
  renumber(loop.instr, place);
}

bool shrink_loops(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (const Loop& loop : loops_of_own_state(module)) {
    const std::vector<bool> live = live_elements(loop);
    if (std::find(live.begin(), live.end(), false) == live.end()) continue;
    if (!context.allow("dce", "loop_element")) continue;
    shrink(loop, live);
    changed = true;
  }
  return changed;
}

bool remove_dead(hlo::Module& module) {
  bool changed = module.remove_dead_computations() > 0;
  for (const auto& computation : module.computations()) changed |= computation->remove_dead() > 0;
  return changed;
}

}  // namespace

Result<bool> dce(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  // Removing calls may leave computations unreached, and shrinking loops leaves dead operands.
  while (remove_dead(module) || shrink_loops(module, context)) changed = true;
  return changed;
}

}  // namespace heddle::opt
