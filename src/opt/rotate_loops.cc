// rotate_loops: evaluates a loop's condition at the end of each step, together with the rest of it,
// and once before the loop; the condition computation then only reads the result. A separate
// condition would be one more kernel in every step. Exact: the same values, computed as often. Each
// rewrite leaves one loop fewer whose condition computes.
#include "hlo/loop_trips.h"
#include "opt/counted_loop.h"
#include "opt/loop_state.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

constexpr size_t kMostInstrs = 16;  // of a condition

bool is_worth_it(const Loop& loop) {
  const Computation& condition = *loop.condition;
  const Instr* root = condition.root();
  if (root->is(Opcode::get_tuple_element) || root->is(Opcode::constant) ||
      condition.instrs().size() > kMostInstrs || !loop.body->root()->is(Opcode::tuple))
    return false;
  for (const Instr* instr : condition.instrs())
    if (hlo::has_effect(*instr) || !instr->called().empty() ||
        !instr->control_predecessors().empty())
      return false;
  return true;
}

void rotate(const Loop& loop) {
  Instr* old = loop.instr;
  Computation* parent = old->parent();
  const auto trips =
      hlo::known_trips(old) ? hlo::known_trips(old) : trip_count(old, kMostCountedTrips);
  const auto last = static_cast<int64_t>(loop.size());
  std::vector<Shape> shapes = old->shape().elements();
  shapes.push_back(loop.condition->root()->shape());
  const Shape shape = Shape::make_tuple(shapes);

  Builder outside(parent);
  std::vector<Instr*> init;
  for (int64_t i = 0; i < last; ++i) init.push_back(outside.get_tuple_element(old->operand(0), i));
  init.push_back(inline_computation(parent, *loop.condition, {old->operand(0)}));

  Instr* next = loop.body->root();
  std::vector<Instr*> results = next->operands();
  results.push_back(inline_computation(loop.body, *loop.condition, {next}));
  loop.state()->set_shape(shape);
  loop.body->set_root(loop.body->add(Opcode::tuple, shape, results));

  Builder asks(parent->module()->add_computation(loop.condition->name() + ".again"));
  asks.computation()->set_root(asks.get_tuple_element(asks.parameter(0, shape, "state"), last));
  Instr* rotated = outside.while_loop(asks.computation(), loop.body, outside.tuple(init));
  rotated->copy_notes(*old);
  if (trips) hlo::set_trips(rotated, *trips);
  for (Instr* user : std::vector<Instr*>(old->users())) {
    parent->replace_all_uses(user, outside.get_tuple_element(rotated, user->tuple_index()));
    parent->remove(user);
  }
  parent->remove(old);
  outside.check();
  asks.check();
  parent->sort();
}

}  // namespace

Result<bool> rotate_loops(hlo::Module& module, const PassContext& context) {
  bool changed = false;
  for (const Loop& loop : loops_of_own_state(module)) {
    if (!is_worth_it(loop) || !context.allow("rotate_loops", "condition")) continue;
    rotate(loop);
    changed = true;
  }
  if (changed) module.remove_dead_computations();
  return changed;
}

}  // namespace heddle::opt
