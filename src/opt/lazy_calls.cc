#include "opt/lazy_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/decision.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

// A computation and the calls of it in another, in order.
struct Repeated {
  Computation* computation = nullptr;
  std::vector<Instr*> calls;
};

std::vector<Repeated> repeated_in(const Computation& computation) {
  std::vector<Repeated> found;
  std::unordered_map<const Computation*, size_t> place;
  for (Instr* instr : computation.instrs()) {
    if (!instr->is(Opcode::call)) continue;
    Computation* called = instr->called()[0];
    const auto [at, added] = place.try_emplace(called, found.size());
    if (added) found.push_back({called, {}});
    found[at->second].calls.push_back(instr);
  }
  return found;
}

bool is_static(const Shape& shape, bool may_be_tuple) {
  if (!shape.is_tuple()) return shape.is_array() && shape.is_static();
  return may_be_tuple && std::all_of(shape.elements().begin(), shape.elements().end(),
                                     [](const Shape& one) { return is_static(one, false); });
}

// Refuses computations whose optimisation depends on the whole graph or on the place of the call.
Decision is_of_a_kind(const Computation& computation) {
  for (const Instr* instr : computation.instrs()) {
    if (hlo::has_effect(*instr))
      return Decision::no("lazy-effect", "{} has an effect", instr->name());
    if (!instr->control_predecessors().empty())
      return Decision::no("lazy-order", "{} has control edges", instr->name());
    switch (instr->opcode()) {
      case Opcode::convolution:
      case Opcode::reduce_window:
      case Opcode::select_and_scatter:
        return Decision::no("lazy-layout", "the layout of {} is chosen with the whole graph",
                            instr->name());
      case Opcode::while_:
      case Opcode::conditional:
      case Opcode::custom_call:
      case Opcode::call:
        return Decision::no("lazy-control", "it has the {} {}", hlo::opcode_text(instr->opcode()),
                            instr->name());
      default:
        break;
    }
    const bool may_be_tuple = !instr->is(Opcode::parameter);
    if (!is_static(instr->shape(), may_be_tuple))
      return Decision::no("lazy-shape", "{} is not an array of known extents", instr->name());
  }
  return Decision::yes();
}

Decision fits(const Repeated& one) {
  for (const Instr* call : one.calls) {
    if (!call->control_predecessors().empty() || !call->control_successors().empty())
      return Decision::no("lazy-order", "{} has control edges", call->name());
    for (size_t i = 0; i < call->operands().size(); ++i)
      if (call->operand(i)->shape().without_layout() !=
          one.computation->parameters()[i]->shape().without_layout())
        return Decision::no("lazy-shape", "{} has a different argument {}", call->name(), i);
    if (!call->shape().is_tuple()) continue;
    if (call == call->parent()->root())
      return Decision::no("lazy-shape", "the results of {} are the module's", call->name());
    for (const Instr* user : call->users())
      if (!user->is(Opcode::get_tuple_element))
        return Decision::no("lazy-shape", "the results of {} are read as one", call->name());
  }
  return Decision::yes();
}

bool same_splats(const Instr* a, const Instr* b) {
  const Literal *one = splat_of(a), *other = splat_of(b);
  return one && other && *one == *other;
}

// Kinds of arguments: differs per call; the same run-time value for all calls; the same constants,
// which move into the computation.
enum class Argument { passed, shared, moved };

// Whether a call depends on the result of another one. Independent calls are micro-batches.
bool follow_one_another(const Repeated& one) {
  std::unordered_set<const Instr*> after(one.calls.begin(), one.calls.end());
  for (const Instr* instr : one.calls[0]->parent()->instrs()) {
    const bool reads = std::any_of(instr->operands().begin(), instr->operands().end(),
                                   [&](const Instr* operand) { return after.contains(operand); });
    if (!reads) continue;
    if (instr->is(Opcode::call) && instr->called()[0] == one.computation) return true;
    after.insert(instr);
  }
  return false;
}

// The steps of an unrolled recurrence share matrices: reroll.cc makes a loop of it instead.
Decision is_no_step(const Repeated& one, const std::vector<Argument>& arguments) {
  if (!follow_one_another(one)) return Decision::yes();
  for (const Instr* instr : one.computation->instrs()) {
    if (!instr->is(Opcode::dot)) continue;
    const Instr* side = instr->operand(1);
    while (side->is(Opcode::reshape) || side->is(Opcode::transpose)) side = side->operand(0);
    if (side->is(Opcode::constant) ||
        (side->is(Opcode::parameter) &&
         arguments[static_cast<size_t>(side->parameter_number())] != Argument::passed))
      return Decision::no("lazy-recurrence", "all use the same matrix {}, like the steps of a loop",
                          side->name());
  }
  return Decision::yes();
}

Decision find_arguments(const Repeated& one, std::vector<Argument>* arguments) {
  for (size_t i = 0; i < one.computation->parameters().size(); ++i) {
    const Instr* first = one.calls[0]->operand(i);
    bool any = false, same = true;
    for (const Instr* call : one.calls) {
      const Instr* operand = call->operand(i);
      any = any || is_constant_expression(operand);
      same = same && (operand == first || same_splats(operand, first));
    }
    if (any && !same)
      return Decision::no("lazy-constants",
                          "argument {} is a different constant at each call: what is computed from "
                          "it is computed before the run",
                          i);
    arguments->push_back(any ? Argument::moved : same ? Argument::shared : Argument::passed);
  }
  return is_no_step(one, *arguments);
}

// Copies the constant expression `x` to `into`.
Instr* copy_into(Computation* into, const Instr* x,
                 std::unordered_map<const Instr*, Instr*>* copies) {
  if (const auto known = copies->find(x); known != copies->end()) return known->second;
  std::vector<Instr*> operands;
  for (const Instr* operand : x->operands()) operands.push_back(copy_into(into, operand, copies));
  Instr* copy =
      into->add(x->opcode(), x->shape(), std::move(operands), x->attrs(), x->called(), x->name());
  copy->copy_notes(*x);
  copies->emplace(x, copy);
  return copy;
}

class Signature {
 public:
  Signature(const Repeated& one, std::vector<Argument> arguments)
      : one_(one), arguments_(std::move(arguments)) {}

  // Returns the calls as rebuilt.
  std::vector<Instr*> simplify(bool* changed) {
    Computation* computation = one_.computation;
    std::unordered_map<const Instr*, Instr*> copies;
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i] == Argument::moved)
        computation->replace_all_uses(computation->parameters()[i],
                                      copy_into(computation, one_.calls[0]->operand(i), &copies));
    *changed |= !copies.empty();
    *changed |= drop_results();
    std::vector<int64_t> unread;
    for (const Instr* parameter : computation->parameters())
      if (parameter->users().empty() && parameter->control_successors().empty() &&
          parameter != computation->root())
        unread.push_back(parameter->parameter_number());
    *changed |= !unread.empty();
    for (size_t i = unread.size(); i-- > 0;) computation->remove_parameter(unread[i]);
    std::vector<Instr*> calls;
    for (Instr* call : one_.calls) calls.push_back(renewed(call, unread));
    return calls;
  }

 private:
  bool drop_results() {
    Computation* computation = one_.computation;
    Instr* root = computation->root();
    bool changed = false;
    if (root->shape().is_tuple() && root->is(Opcode::tuple)) {
      place_.assign(root->operands().size(), -1);
      for (const Instr* call : one_.calls)
        for (const Instr* user : call->users())
          place_[static_cast<size_t>(user->tuple_index())] = 0;
      std::vector<Instr*> kept;
      std::vector<Shape> shapes;
      for (size_t i = 0; i < place_.size(); ++i) {
        if (place_[i] < 0) continue;
        place_[i] = static_cast<int64_t>(kept.size());
        kept.push_back(root->operand(i));
        shapes.push_back(root->operand(i)->shape());
      }
      changed = kept.size() < place_.size();
      if (changed)
        computation->set_root(
            computation->add(Opcode::tuple, Shape::make_tuple(shapes), std::move(kept)));
    }
    return computation->remove_dead() > 0 || changed;
  }

  Instr* renewed(Instr* call, const std::vector<int64_t>& unread) {
    const Shape& shape = one_.computation->root()->shape();
    if (unread.empty() && shape == call->shape()) return call;
    std::vector<Instr*> operands;
    for (size_t i = 0; i < call->operands().size(); ++i)
      if (!std::binary_search(unread.begin(), unread.end(), static_cast<int64_t>(i)))
        operands.push_back(call->operand(i));
    Computation* entry = call->parent();
    Instr* made = entry->add(Opcode::call, shape, std::move(operands), call->attrs(),
                             {one_.computation}, call->name());
    made->copy_notes(*call);
    if (!call->shape().is_tuple()) {
      entry->replace_all_uses(call, made);
    } else {
      for (Instr* user : std::vector<Instr*>(call->users())) {
        const auto old = static_cast<size_t>(user->tuple_index());
        const int64_t index = place_.empty() ? user->tuple_index() : place_[old];
        Instr* element = entry->add(Opcode::get_tuple_element, user->shape(), {made},
                                    hlo::TupleIndexAttrs{index}, {}, user->name());
        entry->replace_all_uses(user, element);
        entry->remove(user);
      }
    }
    entry->remove(call);
    return made;
  }

  const Repeated& one_;
  const std::vector<Argument> arguments_;
  std::vector<int64_t> place_;  // by result: its new number; empty: not a tuple; -1: unread
};

// Instructions that depend on no parameter.
std::unordered_set<const Instr*> constant_parts(const Computation& computation) {
  std::unordered_set<const Instr*> found;
  for (const Instr* instr : computation.instrs())
    if (!instr->is(Opcode::parameter) && is_removable(*instr) &&
        std::all_of(instr->operands().begin(), instr->operands().end(),
                    [&](const Instr* operand) { return found.count(operand) > 0; }))
      found.insert(instr);
  return found;
}

// Makes copies of one computation in the entry.
class Copier {
 public:
  explicit Copier(const Computation& from) : from_(from), constant_(constant_parts(from)) {}

  Instr* copy(Computation* into, const std::vector<Instr*>& arguments) {
    std::unordered_map<const Instr*, Instr*> own;
    auto value_of = [&](const Instr* x) {
      const auto known = own.find(x);
      return known != own.end() ? known->second : shared_.at(x);
    };
    for (const Instr* instr : from_.instrs()) {
      if (instr->is(Opcode::parameter)) {
        own.emplace(instr, arguments.at(static_cast<size_t>(instr->parameter_number())));
        continue;
      }
      if (shared_.count(instr) > 0) continue;
      std::vector<Instr*> operands;
      for (const Instr* operand : instr->operands()) operands.push_back(value_of(operand));
      Instr* copy = into->add(instr->opcode(), instr->shape(), std::move(operands), instr->attrs(),
                              instr->called(), instr->name());
      copy->copy_notes(*instr);
      (constant_.count(instr) > 0 ? shared_ : own).emplace(instr, copy);
    }
    return value_of(from_.root());
  }

 private:
  const Computation& from_;
  const std::unordered_set<const Instr*> constant_;
  std::unordered_map<const Instr*, Instr*> shared_;
};

}  // namespace

KeptCalls keep_calls(hlo::Module* module, std::vector<std::string>* notes) {
  KeptCalls kept;
  std::unordered_map<const Computation*, int64_t> uses;
  for (const auto& computation : module->computations())
    for (const Instr* instr : computation->instrs())
      for (const Computation* called : instr->called()) ++uses[called];
  for (const Repeated& one : repeated_in(*module->entry())) {
    const auto calls = static_cast<int64_t>(one.calls.size());
    const auto instrs = static_cast<int64_t>(one.computation->instrs().size());
    if (calls < kFewestLazyCalls || instrs * (calls - 1) < kLeastLazyInstrs) continue;
    std::vector<Argument> arguments;
    Decision decision = is_of_a_kind(*one.computation);
    if (decision && uses.at(one.computation) > calls)
      decision = Decision::no("lazy-control", "it is called elsewhere, too");
    if (decision) decision = fits(one);
    if (decision) decision = find_arguments(one, &arguments);
    if (notes)
      notes->push_back(
          decision ? fmt::format("{} calls of %{} ({} instructions) are one function until "
                                 "they are fused",
                                 calls, one.computation->name(), instrs)
                   : fmt::format("{} calls of %{} are inlined at once: {} ({})", calls,
                                 one.computation->name(), decision.reason(), decision.code()));
    if (!decision) continue;
    for (const Instr* call : Signature(one, std::move(arguments)).simplify(&kept.changed))
      kept.calls.insert(call);
  }
  return kept;
}

// The copies share constant expressions and the computations of their fusions.
Result<bool> inline_kept_calls(hlo::Module& module, const PassContext&) {
  bool changed = false;
  for (Computation* computation : module.post_order()) {
    const std::vector<Repeated> all = repeated_in(*computation);
    if (all.empty()) continue;
    std::unordered_map<const Computation*, Copier> copiers;
    for (const Repeated& one : all) copiers.emplace(one.computation, Copier(*one.computation));
    for (Instr* instr : std::vector<Instr*>(computation->instrs())) {
      if (!instr->is(Opcode::call)) continue;
      Instr* root = copiers.at(instr->called()[0]).copy(computation, instr->operands());
      computation->replace_all_uses(instr, root);
      computation->remove(instr);
    }
    computation->remove_dead();
    computation->sort();
    changed = true;
  }
  if (changed) module.remove_dead_computations();
  return changed;
}

}  // namespace heddle::opt
