// simplify_control: a branch with a constant condition is taken; a loop whose condition is false
// for any state is removed; a loop that runs once is replaced by its body, and one with few trips
// and a small body is unrolled; a loop-invariant state element that starts from a constant becomes
// that constant inside (which makes a loop's trip count and its tables known there).
#include <algorithm>
#include <unordered_map>

#include "hlo/loop_trips.h"
#include "opt/counted_loop.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/rewriter.h"

namespace heddle::opt {
namespace {

// For a pred: true first; for a number: an out-of-range value takes the last branch.
size_t taken_branch(const Literal& selector, size_t branches) {
  if (selector.type() == Type::pred) return selector.get_s64(0) != 0 ? 0 : 1;
  const int64_t branch = selector.get_s64(0);
  const bool in_range = branch >= 0 && branch < static_cast<int64_t>(branches);
  return in_range ? static_cast<size_t>(branch) : branches - 1;
}

// Unrolled, a loop of few cheap trips is a few kernels, often one. Dots and the like gain nothing:
// their time is in the body, and every trip would be one more kernel to compile.
constexpr int64_t kMostTrips = 4;
constexpr size_t kMostInstrs = 24;

bool is_cheap(const Computation& body) {
  if (body.instrs().size() > kMostInstrs) return false;
  return std::all_of(body.instrs().begin(), body.instrs().end(), [](const Instr* instr) {
    return is_elementwise(instr) || instr->is(Opcode::parameter) || instr->is(Opcode::constant) ||
           instr->is(Opcode::tuple) || instr->is(Opcode::get_tuple_element) ||
           instr->is(Opcode::broadcast) || instr->is(Opcode::reshape) ||
           instr->is(Opcode::transpose) || instr->is(Opcode::slice) || instr->is(Opcode::iota) ||
           instr->is(Opcode::dynamic_slice) || instr->is(Opcode::concatenate) ||
           instr->is(Opcode::reduce);
  });
}

// The state after a loop with few known trips; null: it stays a loop.
Instr* written_out(Instr* loop, hlo::Builder& b, const PassContext& context) {
  const std::optional<int64_t> trips = trip_count(loop, kMostTrips);
  const Computation& body = *loop->called()[1];
  if (!trips || hlo::has_effect(*loop) || (*trips > 1 && !is_cheap(body))) return nullptr;
  if (body.root()->shape().without_layout() != loop->shape().without_layout()) return nullptr;
  if (!context.allow("simplify_control", "few_trips")) return nullptr;
  Instr* state = loop->operand(0);
  for (int64_t trip = 0; trip < *trips; ++trip)
    state = inline_computation(b.computation(), body, {state});
  return state;
}

// Once made, a copy of a branch must be used (it may have effects), so the rewrite budget is
// checked first.
Rewriter::Proposal visit(Instr* instr, hlo::Builder& b, const PassContext& context) {
  if (instr->is(Opcode::conditional)) {
    const Literal* selector = splat_of(instr->operand(0));
    if (!selector) return {};
    const size_t branch = taken_branch(*selector, instr->called().size());
    const Computation& callee = *instr->called()[branch];
    if (callee.root()->shape().without_layout() != instr->shape().without_layout()) return {};
    if (!context.allow("simplify_control", "known_branch")) return {};
    return {inline_computation(b.computation(), callee, {instr->operand(branch + 1)}),
            /*rule=*/{}, /*drop_effect=*/true};
  }
  if (instr->is(Opcode::while_)) {
    const Literal* again = splat_of(instr->called()[0]->root());
    if (again && again->get_s64(0) == 0)
      return {instr->operand(0), "loop_never_runs", /*drop_effect=*/true};
    return {written_out(instr, b, context), /*rule=*/{}};
  }
  return {};
}

// Larger ones stay data: they would be duplicated for each reader.
constexpr int64_t kMaxSunkElems = 1024;

// Replaces reads of element `index` in `computation` (a loop's condition or body) by a constant.
bool sink_into(Computation* computation, size_t index, const Instr* constant) {
  Instr* state = computation->parameters()[0];
  Instr* copy = nullptr;
  for (Instr* part : std::vector<Instr*>(state->users())) {
    if (!part->is(Opcode::get_tuple_element) || part->tuple_index() != static_cast<int64_t>(index))
      continue;
    // A use that only passes the element on stays: dce removes it if it is not read outside.
    for (Instr* user : std::vector<Instr*>(part->users())) {
      if (user == computation->root() && user->is(Opcode::tuple)) continue;
      if (!copy)
        copy = computation->add(Opcode::constant, part->shape(), {}, constant->attrs(), {},
                                constant->name());
      for (size_t i = 0; i < user->operands().size(); ++i)
        if (user->operand(i) == part) computation->replace_operand(user, i, copy);
    }
  }
  return copy != nullptr;
}

bool sink_constants(Instr* loop, const std::unordered_map<const Computation*, int>& callers,
                    const PassContext& context) {
  const Instr* init = loop->operand(0);
  Computation *condition = loop->called()[0], *body = loop->called()[1];
  if (!init->is(Opcode::tuple) || !body->root()->is(Opcode::tuple)) return false;
  if (callers.at(condition) > 1 || callers.at(body) > 1) return false;
  bool changed = false;
  for (size_t i = 0; i < init->operands().size(); ++i) {
    const Instr* start = init->operand(i);
    if (!constant_of(start) || start->shape().elems() > kMaxSunkElems) continue;
    if (!hlo::is_invariant_leaf(loop, static_cast<int64_t>(i))) continue;
    if (!context.allow("simplify_control", "loop_constant")) continue;
    changed |= sink_into(condition, i, start);
    changed |= sink_into(body, i, start);
  }
  return changed;
}

bool sink_constants(hlo::Module& module, const PassContext& context) {
  std::unordered_map<const Computation*, int> callers;
  std::vector<Instr*> loops;
  for (const auto& computation : module.computations()) {
    for (Instr* instr : computation->instrs()) {
      for (const Computation* called : instr->called()) ++callers[called];
      if (instr->is(Opcode::while_)) loops.push_back(instr);
    }
  }
  bool changed = false;
  for (Instr* loop : loops) changed |= sink_constants(loop, callers, context);
  return changed;
}

}  // namespace

Result<bool> simplify_control(hlo::Module& module, const PassContext& context) {
  bool changed = rewrite_module(
      module, context, "simplify_control",
      [&](Instr* instr, hlo::Builder& b) { return visit(instr, b, context); },
      [](const Instr* instr) {
        return instr->is(Opcode::conditional) || instr->is(Opcode::while_);
      });
  changed |= sink_constants(module, context);
  return changed;
}

}  // namespace heddle::opt
