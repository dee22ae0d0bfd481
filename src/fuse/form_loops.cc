// After the cover: a while of known trip count whose step is a few kernels of little work becomes a
// loop fusion (hlo/join.h), one launch for all steps. Loop-invariant values of the step are
// computed before it. Refusals: `loop-count` (the trip count is not known), `loop-body` (a step has
// operators without a kernel), `loop-state` (its state has no place in the kernel), `loop-work` (a
// step's work is worth its launches, or more than one core).
#include "fuse/cut_loop.h"

#include <algorithm>
#include <cmath>

#include "cost/step_cost.h"
#include "fuse/passes.h"
#include "hlo/join.h"
#include "hlo/loop_trips.h"

namespace heddle::fuse {

namespace {

constexpr double kMostNs = 50e6, kPieceNs = 10e6, kLeastPieceNs = 1e6, kMostPieceNs = 100e6;

// The time of a step on one core: its kernels, with the loops inside it.
double time_ns(const Computation& step, const target::Target& target) {
  double ns = 0;
  for (const Instr* instr : step.instrs()) {
    if (instr->is(Opcode::while_))
      ns += static_cast<double>(hlo::known_trips(instr).value_or(1)) *
            time_ns(*instr->called()[1], target);
    else if (instr->is(Opcode::fusion))
      ns += hlo::join_of(*instr) == hlo::Join::loop ? time_ns(*instr->called()[0], target)
                                                    : cost::cost_of_step({instr}, target).alone_ns;
  }
  return ns;
}

// The trips of a piece; 0: none fits.
int64_t piece_of(int64_t trips, double step_ns) {
  int64_t best = 0;
  const auto distance = [&](int64_t piece) {
    return std::abs(std::log(static_cast<double>(piece) * step_ns / kPieceNs));
  };
  for (int64_t piece = 2; piece < trips; ++piece) {
    const double ns = static_cast<double>(piece) * step_ns;
    if (ns > kMostPieceNs) break;
    if (trips % piece != 0 || ns < kLeastPieceNs) continue;
    if (best == 0 || distance(piece) < distance(best)) best = piece;
  }
  return best;
}

void replace(Instr* loop, Instr* other) {
  Computation* parent = loop->parent();
  for (Instr* before : std::vector<Instr*>(loop->control_predecessors()))
    parent->add_control_edge(before, other);
  parent->replace_all_uses(loop, other);
  parent->remove(loop);
  parent->sort();
}

// The outer loop gets no trip count yet: it must not become a kernel.
Instr* cut(Instr* loop, int64_t piece) {
  Computation* parent = loop->parent();
  hlo::Module* module = parent->module();
  Computation* condition = loop->called()[0];
  Computation* body = loop->called()[1];
  const tensor::Shape shape = loop->shape();
  Computation* pieces = module->add_computation(body->name() + ".piece");
  Instr* state = pieces->add(Opcode::parameter, shape, {}, hlo::ParameterAttrs{0}, {}, "state");
  Instr* inner =
      pieces->add(Opcode::while_, shape, {state}, loop->attrs(), {condition, body}, loop->name());
  inner->copy_notes(*loop);
  hlo::set_trips(inner, piece);
  std::vector<Instr*> next;
  for (int64_t i = 0; i < std::ssize(shape.elements()); ++i)
    next.push_back(pieces->add(Opcode::get_tuple_element, shape.elements()[static_cast<size_t>(i)],
                               {hlo::is_invariant_leaf(loop, i) ? state : inner},
                               hlo::TupleIndexAttrs{i}));
  pieces->set_root(pieces->add(Opcode::tuple, shape, next));
  Instr* outer =
      parent->add(Opcode::while_, shape, {loop->operand(0)}, loop->attrs(),
                  {module->clone_computation(*condition), pieces}, loop->name() + ".pieces");
  replace(loop, outer);
  return outer;
}

}  // namespace

CutLoops::CutLoops(Computation* computation, const target::Target& target) {
  for (Instr* loop : std::vector<Instr*>(computation->instrs())) {
    if (!loop->is(Opcode::while_)) continue;
    const auto trips = hlo::known_trips(loop);
    // The host must be able to tell without a kernel whether the loop goes on.
    if (!trips || !loop->called()[0]->root()->is(Opcode::get_tuple_element)) continue;
    const double ns = time_ns(*loop->called()[1], target);
    if (ns <= 0 || static_cast<double>(*trips) * ns < kMostNs || !may_be_kernel(loop, target))
      continue;
    if (const int64_t piece = piece_of(*trips, ns); piece > 0)
      cut_.push_back({cut(loop, piece), *trips, piece});
  }
}

std::vector<Computation*> CutLoops::pieces() const {
  std::vector<Computation*> result;
  for (const Cut& one : cut_) result.push_back(one.outer->called()[1]);
  return result;
}

bool CutLoops::join_again() {
  std::erase_if(cut_, [](const Cut& one) {
    const std::vector<Instr*>& inside = one.outer->called()[1]->instrs();
    const auto inner = std::find_if(inside.begin(), inside.end(),
                                    [](const Instr* instr) { return instr->is(Opcode::while_); });
    if (inner == inside.end()) return false;
    Instr* whole =
        one.outer->parent()->add(Opcode::while_, one.outer->shape(), {one.outer->operand(0)},
                                 (*inner)->attrs(), (*inner)->called(), (*inner)->name());
    whole->copy_notes(**inner);
    hlo::set_trips(whole, one.trips);
    replace(one.outer, whole);
    return true;
  });
  for (const Cut& one : cut_) hlo::set_trips(one.outer, one.trips / one.piece);
  return !cut_.empty();
}

Result<bool> form_loops(hlo::Module& module, const Context& context) {
  const target::Target& target = *context.target;
  if (target.kind != target::DeviceKind::cpu) return false;
  bool changed = false;
  for (const Covered& covered : covered_computations(module)) {
    CutLoops cut(covered.computation, target);
    for (Computation* pieces : cut.pieces())
      changed |= form_loops_in(pieces, target, context.refusals);
    changed |= form_loops_in(covered.computation, target, context.refusals);
    changed |= cut.join_again();
  }
  module.remove_dead_computations();
  return changed;
}

}  // namespace heddle::fuse
