#include <algorithm>

#include "opt/counted_loop.h"
#include "opt/rewriter.h"
#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

// Fewer than reroll requires, so that the two do not undo each other.
constexpr int64_t kMostTrips = 7;
constexpr size_t kMostInstrs = 800;  // of all steps

// Elementwise arithmetic and movement: the unrolled steps form one kernel's body.
bool is_of_elements(const Instr* instr) {
  switch (instr->opcode()) {
    case Opcode::broadcast:
    case Opcode::concatenate:
    case Opcode::constant:
    case Opcode::dynamic_slice:
    case Opcode::get_tuple_element:
    case Opcode::iota:
    case Opcode::pad:
    case Opcode::parameter:
    case Opcode::reshape:
    case Opcode::reverse:
    case Opcode::slice:
    case Opcode::transpose:
    case Opcode::tuple:
      return true;
    default:
      return hlo::has_trait(instr->opcode(), hlo::elementwise) && !hlo::has_effect(*instr);
  }
}

}  // namespace

Instr* while_of_elements(Instr* x, Builder& b) {
  const hlo::Computation& body = *x->called()[1];
  if (!x->control_predecessors().empty() || !x->control_successors().empty()) return nullptr;
  if (body.instrs().size() > kMostInstrs ||
      !std::all_of(body.instrs().begin(), body.instrs().end(), is_of_elements))
    return nullptr;
  const std::optional<int64_t> trips = trip_count(x, kMostTrips);
  if (!trips || static_cast<size_t>(*trips) * body.instrs().size() > kMostInstrs) return nullptr;
  Instr* state = x->operand(0);
  for (int64_t step = 0; step < *trips; ++step)
    state = inline_computation(b.computation(), body, {state});
  return state;
}

}  // namespace heddle::opt::rules
