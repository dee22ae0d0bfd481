#include "hlo/loop_trips.h"

#include <algorithm>

namespace heddle::hlo {

std::optional<int64_t> known_trips(const Instr* loop) { return loop->facts().trips; }
void set_trips(Instr* loop, int64_t trips) { loop->facts().trips = trips; }

bool is_strips(const Instr* loop) { return loop->facts().strips; }
void set_strips(Instr* loop) { loop->facts().strips = true; }

const Instr* loop_of_steps(const Instr* loop) {
  if (!is_strips(loop)) return loop;
  const std::vector<Instr*>& inside = loop->called()[1]->instrs();
  return *std::find_if(inside.begin(), inside.end(),
                       [](const Instr* instr) { return instr->is(Opcode::while_); });
}

bool is_unread(const Instr* value) { return value->facts().unread; }
void set_unread(Instr* value) { value->facts().unread = true; }

bool is_invariant_leaf(const Instr* loop, int64_t leaf) {
  const Computation& body = *loop->called()[1];
  const Instr* next = body.root()->operand(static_cast<size_t>(leaf));
  return next->is(Opcode::get_tuple_element) && next->operand(0) == body.parameters()[0] &&
         next->tuple_index() == leaf;
}

}  // namespace heddle::hlo
