#include "opt/loop_state.h"

#include <algorithm>
#include <unordered_map>

namespace heddle::opt {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;

bool only_read_by_element(const Instr* tuple) {
  return std::all_of(tuple->users().begin(), tuple->users().end(),
                     [](const Instr* user) { return user->is(Opcode::get_tuple_element); });
}

bool has_own_state(const Loop& loop, const std::unordered_map<const Computation*, int>& callers) {
  return loop.instr->shape().is_tuple() && loop.body->root()->is(Opcode::tuple) &&
         loop.instr != loop.instr->parent()->root() && only_read_by_element(loop.instr) &&
         loop.body->root()->users().empty() &&
         only_read_by_element(loop.condition->parameters()[0]) &&
         only_read_by_element(loop.state()) && callers.at(loop.condition) == 1 &&
         callers.at(loop.body) == 1;
}

}  // namespace

std::vector<Loop> loops_of_own_state(const hlo::Module& module) {
  std::unordered_map<const Computation*, int> callers;
  std::vector<Loop> loops;
  for (Computation* computation : module.post_order()) {
    for (Instr* instr : computation->instrs()) {
      for (const Computation* called : instr->called()) ++callers[called];
      if (instr->is(Opcode::while_))
        loops.push_back({instr, instr->called()[0], instr->called()[1]});
    }
  }
  std::erase_if(loops, [&](const Loop& loop) { return !has_own_state(loop, callers); });
  return loops;
}

}  // namespace heddle::opt
