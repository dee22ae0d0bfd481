// thread_random_state: rng and rng-get-and-update-state become arithmetic on a state
// (random_draw.h) that the entry takes as one more parameter and returns as one more result: a
// state array of the program (hlo/state_arrays.h). Draws take it in the order in which the
// interpreter evaluates them, through called computations, branches and the trips of loops. A body
// that is applied to scalars (of reduce, map, sort …) has no order that could be kept: a draw there
// is a user error. Each rewrite leaves one draw, or one call that contains draws, fewer.
#include <unordered_map>
#include <unordered_set>

#include "hlo/state_arrays.h"
#include "interp/evaluator.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/random_draw.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

using hlo::Builder;

// A value, the random state after it, and the instruction that makes both.
struct Valued {
  Instr *value, *state, *maker;
};

size_t leaves_of(const Shape& shape) { return shape.is_tuple() ? shape.elements().size() : 1; }

// A tuple's elements, or the value alone.
std::vector<Instr*> elements_of(Instr* value, Builder& b) {
  if (!value->shape().is_tuple()) return {value};
  if (value->is(Opcode::tuple)) return value->operands();
  std::vector<Instr*> elements;
  for (size_t i = 0; i < leaves_of(value->shape()); ++i)
    elements.push_back(b.get_tuple_element(value, static_cast<int64_t>(i)));
  return elements;
}

// The first elements of a tuple as a value of the given shape.
Instr* value_in(Instr* tuple, const Shape& shape, Builder& b) {
  if (!shape.is_tuple()) return b.get_tuple_element(tuple, 0);
  std::vector<Instr*> elements;
  for (size_t i = 0; i < leaves_of(shape); ++i)
    elements.push_back(b.get_tuple_element(tuple, static_cast<int64_t>(i)));
  return b.tuple(elements);
}

Instr* with(Instr* value, const std::vector<Instr*>& more, Builder& b) {
  std::vector<Instr*> elements = elements_of(value, b);
  elements.insert(elements.end(), more.begin(), more.end());
  return b.tuple(elements);
}

Shape with(const Shape& shape, const std::vector<Shape>& more) {
  std::vector<Shape> elements = shape.is_tuple() ? shape.elements() : std::vector<Shape>{shape};
  elements.insert(elements.end(), more.begin(), more.end());
  return Shape::make_tuple(std::move(elements));
}

class Threader {
 public:
  explicit Threader(hlo::Module& module) : module_(module) {}

  Result<bool> run() {
    for (const Computation* computation : module_.post_order())
      for (const Instr* instr : computation->instrs())
        if (draws(instr)) drawing_.insert(computation);
    if (!drawing_.contains(module_.entry())) return false;
    states_ = hlo::states_of(module_);
    module_.remove_dead_computations();  // unreachable ones have no caller to update
    const std::vector<Computation*> callees_first = module_.post_order();
    for (const Computation* computation : callees_first)
      for (const Instr* instr : computation->instrs())
        if (draws(instr)) HEDDLE_RETURN_IF_ERROR(check(*instr));
    for (Computation* computation : callees_first)
      if (drawing_.contains(computation)) thread(computation);
    module_.remove_dead_computations();
    return true;
  }

 private:
  bool draws(const Instr* instr) const {
    if (is_draw(instr)) return true;
    if (instr->is(Opcode::async_update) || instr->is(Opcode::async_done)) return false;
    for (const Computation* called : instr->called())
      if (drawing_.contains(called)) return true;
    return false;
  }

  // Calls of one computation: the interpreter evaluates them at their position (or that of their
  // start).
  static bool is_call(const Instr& instr) {
    const bool named = instr.is(Opcode::call) || instr.is(Opcode::fusion) ||
                       instr.is(Opcode::async_start) || instr.is(Opcode::custom_call);
    if (!named || instr.called().size() != 1 || interp::refusal(instr)) return false;
    const std::vector<Instr*>& parameters = instr.called()[0]->parameters();
    bool fits = parameters.size() == instr.operands().size();
    for (size_t i = 0; fits && i < parameters.size(); ++i)
      fits = parameters[i]->shape().compatible(instr.operand(i)->shape());
    return fits && (instr.is(Opcode::async_start) || gives(*instr.called()[0], instr));
  }
  static bool gives(const Computation& callee, const Instr& instr) {
    return callee.root()->shape().compatible(instr.shape());
  }

  Status check(const Instr& instr) const {
    if (is_draw(&instr)) return check_draw(instr);
    if (is_call(instr) && instr.is(Opcode::async_start)) return check_async(instr);
    if (is_call(instr) || instr.is(Opcode::while_) || instr.is(Opcode::conditional)) return {};
    return user_error(
        "%{} ({}): the computation %{} that it applies draws random numbers, which only calls, "
        "branches and loops may; draw an array of them before it",
        instr.name(), hlo::opcode_text(instr.opcode()), instr.called()[0]->name());
  }

  // An asynchronous call with its updates and dones, operands first.
  static std::vector<Instr*> with_waiters(Instr* start) {
    std::vector<Instr*> all{start};
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i]->is(Opcode::async_start) || all[i]->is(Opcode::async_update))
        all.insert(all.end(), all[i]->users().begin(), all[i]->users().end());
    return all;
  }

  // Its results may only be read by async-done.
  static Status check_async(const Instr& start) {
    for (const Instr* instr : with_waiters(const_cast<Instr*>(&start))) {
      const bool done = instr->is(Opcode::async_done);
      const bool waits = done || instr->is(Opcode::async_update) || instr == &start;
      if (waits && (done ? gives(*start.called()[0], *instr)
                         : instr != instr->parent()->root() && instr->control_successors().empty()))
        continue;
      return user_error(
          "%{}: the computation of %{} draws random numbers, which is read by async-done alone",
          instr->name(), start.name());
    }
    return {};
  }

  // Threads the state through all draws, in order: it is an additional parameter, and the final
  // state an additional result.
  void thread(Computation* computation) {
    Builder b(computation);
    Instr* parameter =
        b.parameter(std::ssize(computation->parameters()), random_state_shape(), "random_state");
    Instr* state = parameter;
    const std::vector<Instr*> all = computation->instrs();
    for (Instr* instr : all) {
      if (gone_.contains(instr) || !draws(instr)) continue;
      const Valued made = replaced(instr, state, b);
      state = made.state;
      for (Instr* before : std::vector<Instr*>(instr->control_predecessors()))
        computation->add_control_edge(before, made.maker);
      finish(instr, made.value);
    }
    const Shape before = computation->root()->shape();
    results_.emplace(computation, before);
    computation->set_root(with(computation->root(), {state}, b));
    b.check();
    computation->sort();
    if (computation == module_.entry()) add_port(before);
  }

  Valued replaced(Instr* instr, Instr* state, Builder& b) {
    if (is_draw(instr)) {
      const Drawn drawn = draw(*instr, state, b);
      return {drawn.value, drawn.state, drawn.value};
    }
    if (instr->is(Opcode::while_)) return loop(instr, state, b);
    if (instr->is(Opcode::conditional)) return branch(instr, state, b);
    return call(instr->called()[0], instr->operands(), state, b);
  }

  // For an asynchronous call the async-done instructions give the value.
  void finish(Instr* instr, Instr* value) {
    Computation* computation = instr->parent();
    const std::vector<Instr*> all = with_waiters(instr);
    for (size_t i = all.size(); i-- > 0;) {
      if (!instr->is(Opcode::async_start) || all[i]->is(Opcode::async_done))
        computation->replace_all_uses(all[i], value);
      gone_.insert(all[i]);
      computation->remove(all[i]);
    }
  }

  Valued call(Computation* callee, std::vector<Instr*> operands, Instr* state, Builder& b) const {
    if (!drawing_.contains(callee)) {
      Instr* value = b.call(callee, operands);
      return {value, state, value};
    }
    operands.push_back(state);
    Instr* both = b.call(callee, operands);
    const std::vector<Shape>& shapes = both->shape().elements();
    return {value_in(both, results_.at(callee), b),
            b.get_tuple_element(both, std::ssize(shapes) - 1), both};
  }

  // A computation of one tuple parameter: the elements of `shape`, and the state.
  struct Wrapper {
    Wrapper(hlo::Module& module, const Computation& of, const Shape& tuple, const Shape& shape)
        : b(module.add_computation(of.name() + ".drawing")),
          parameter(b.parameter(0, tuple, "state")),
          value(value_in(parameter, shape, b)),
          state(b.get_tuple_element(parameter, static_cast<int64_t>(leaves_of(shape)))) {}
    Computation* done(Instr* root) {
      b.computation()->set_root(root);
      b.check();
      b.computation()->remove_dead();
      return b.computation();
    }
    Builder b;
    Instr *parameter, *value, *state;
  };

  // The state is one more element. A condition that draws is evaluated before the loop and at the
  // end of each trip, as a condition cannot return a state; its result is the last element.
  Valued loop(Instr* old, Instr* state, Builder& b) {
    Computation *condition = old->called()[0], *body = old->called()[1];
    const bool asks = drawing_.contains(condition);
    const Shape shape = old->shape();
    std::vector<Shape> more{random_state_shape()};
    if (asks) more.push_back(Shape::scalar(Type::pred));
    const Shape tuple = with(shape, more);

    Wrapper step(module_, *body, tuple, shape);
    Valued next = call(body, {step.value}, step.state, step.b);
    std::vector<Instr*> behind{next.state};
    if (asks) {
      const Valued answer = call(condition, {next.value}, next.state, step.b);
      behind = {answer.state, answer.value};
    }
    Computation* new_body = step.done(with(next.value, behind, step.b));

    Wrapper again(module_, *condition, tuple, shape);
    const auto last = static_cast<int64_t>(leaves_of(tuple)) - 1;
    Instr* goes_on = asks ? again.b.get_tuple_element(again.parameter, last)
                          : again.b.call(condition, {again.value});
    Computation* new_condition = again.done(goes_on);

    behind = {state};
    if (asks) {
      const Valued answer = call(condition, {old->operand(0)}, state, b);
      behind = {answer.state, answer.value};
    }
    Instr* made = b.while_loop(new_condition, new_body, with(old->operand(0), behind, b));
    made->copy_notes(*old);
    return {value_in(made, shape, b),
            b.get_tuple_element(made, static_cast<int64_t>(leaves_of(shape))), made};
  }

  // Each branch takes the state and returns it, whether it draws or not.
  Valued branch(Instr* old, Instr* state, Builder& b) {
    std::vector<Instr*> operands{old->operand(0)};
    std::vector<Computation*> branches;
    for (size_t i = 0; i < old->called().size(); ++i) {
      Computation* taken = old->called()[i];
      Instr* operand = old->operand(i + 1);
      operands.push_back(with(operand, {state}, b));
      Wrapper wrapper(module_, *taken, operands.back()->shape(), operand->shape());
      const Valued result = call(taken, {wrapper.value}, wrapper.state, wrapper.b);
      branches.push_back(wrapper.done(with(result.value, {result.state}, wrapper.b)));
    }
    const Shape shape = old->shape();
    const Shape both = with(shape, {random_state_shape()});
    Instr* made = b.make(Opcode::conditional, operands, old->attrs(), branches, &both);
    made->copy_notes(*old);
    return {value_in(made, shape, b),
            b.get_tuple_element(made, static_cast<int64_t>(leaves_of(shape))), made};
  }

  // For the entry: makes its last parameter and last result a state array.
  void add_port(const Shape& before) {
    const Computation& entry = *module_.entry();
    const Shape state = random_state_shape();
    if (!before.is_tuple())
      for (hlo::Alias& alias : module_.input_output_alias) alias.output_index = {0};
    const auto output = static_cast<int64_t>(leaves_of(before));
    module_.input_output_alias.push_back({{output}, std::ssize(entry.parameters()) - 1, {}, false});
    if (module_.entry_layout) {
      module_.entry_layout->first.push_back(state);
      module_.entry_layout->second = with(module_.entry_layout->second, {state});
    }
    states_.push_back(random_state_start());
    hlo::set_states(&module_, states_);
  }

  hlo::Module& module_;
  std::vector<Literal> states_;  // of the module
  std::unordered_set<const Computation*> drawing_;
  std::unordered_map<const Computation*, Shape> results_;  // of threaded ones, originally
  std::unordered_set<const Instr*> gone_;
};

}  // namespace

Result<bool> thread_random_state(hlo::Module& module, const PassContext&) {
  return Threader(module).run();
}

}  // namespace heddle::opt
