#include "fuse/cut_loop.h"

#include <cmath>
#include <cstdlib>

#include "fuse/groups.h"
#include "hlo/loop_trips.h"

namespace heddle::fuse {

namespace {

constexpr double kMostNs = 50e6, kPieceNs = 10e6, kLeastPieceNs = 1e6, kMostPieceNs = 100e6;

// Of the trips of a piece; 0: none fits.
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

void cut(Instr* loop, int64_t trips, int64_t piece) {
  Computation* parent = loop->parent();
  hlo::Module* module = parent->module();
  Computation* condition = loop->called()[0];
  Computation* body = loop->called()[1];
  const tensor::Shape shape = loop->shape();
  Computation* pieces = module->add_computation(body->name() + ".piece");
  Instr* state = pieces->add(Opcode::parameter, shape, {}, hlo::ParameterAttrs{0}, {}, "state");
  Instr* inner =
      pieces->add(Opcode::while_, shape, {state}, loop->attrs(), {condition, body}, loop->name());
  inner->annotations() = loop->annotations();
  hlo::set_trips(inner, piece);
  std::vector<Instr*> next;
  for (int64_t i = 0; i < std::ssize(shape.elements()); ++i)
    next.push_back(pieces->add(Opcode::get_tuple_element, shape.elements()[static_cast<size_t>(i)],
                               {hlo::goes_round(loop, i) ? state : inner},
                               hlo::TupleIndexAttrs{i}));
  pieces->set_root(pieces->add(Opcode::tuple, shape, next));
  Instr* outer =
      parent->add(Opcode::while_, shape, {loop->operand(0)}, loop->attrs(),
                  {module->clone_computation(*condition), pieces}, loop->name() + ".pieces");
  outer->annotations() = loop->annotations();
  hlo::set_trips(outer, trips / piece);
  for (Instr* before : std::vector<Instr*>(loop->control_predecessors()))
    parent->add_control_edge(before, outer);
  parent->replace_all_uses(loop, outer);
  parent->remove(loop);
  parent->sort();
}

}  // namespace

bool cut_long_loops(hlo::Module* module, const std::function<double(Instr*)>& step_ns) {
  bool changed = false;
  for (const Covered& covered : covered_computations(*module)) {
    for (Instr* loop : std::vector<Instr*>(covered.computation->instrs())) {
      if (!loop->is(Opcode::while_)) continue;
      const auto trips = hlo::known_trips(loop);
      // Whether it goes on must be known to the host without a kernel.
      if (!trips || !loop->called()[0]->root()->is(Opcode::get_tuple_element)) continue;
      const double ns = step_ns(loop);
      if (ns <= 0 || static_cast<double>(*trips) * ns < kMostNs) continue;
      const int64_t piece = piece_of(*trips, ns);
      if (piece == 0) continue;
      cut(loop, *trips, piece);
      changed = true;
    }
  }
  return changed;
}

}  // namespace heddle::fuse
