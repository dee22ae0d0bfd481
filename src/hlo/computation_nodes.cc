// Names of nodes under rewriting: a replacement takes over the names of the instruction it
// replaces.
#include <unordered_set>

#include "hlo/module.h"

namespace heddle::hlo {
namespace {

// Not computed by any command: its names go to its readers.
bool is_given(const Instr* instr) {
  return instr->is(Opcode::parameter) || instr->is(Opcode::constant);
}

// Nor do broadcast constants carry names: identical ones are merged, and each kernel that reads one
// would carry the names of all layers.
bool is_shared(const Instr* instr) {
  return is_given(instr) ||
         (instr->is(Opcode::broadcast) && instr->operand(0)->is(Opcode::constant));
}

}  // namespace

// The names of `from` and of the instructions used by it alone, if it has no users left. Cheap, and
// empty, if there are no names.
NodeNames Computation::nodes_of_dying(const Instr* from) const {
  NodeNames names;
  std::unordered_set<const Instr*> dying;
  std::vector<const Instr*> stack{from};
  const auto dies = [&](const Instr* instr) {
    for (const Instr* user : instr->users_)
      if (!dying.contains(user)) return false;
    return instr != root_ && !is_given(instr) && instr->control_successors_.empty() &&
           !has_effect(*instr);
  };
  while (!stack.empty()) {
    const Instr* instr = stack.back();
    stack.pop_back();
    if (dying.contains(instr) || !dies(instr)) continue;
    dying.insert(instr);
    names.add(instr->nodes_);
    stack.insert(stack.end(), instr->operands_.rbegin(), instr->operands_.rend());
  }
  return names;
}

// Names `made` and its operands, recursively, if newer than the replaced instruction and still
// unnamed.
void Computation::name_new(Instr* made, const NodeNames& names, int64_t newer_than) {
  if (names.empty()) return;
  std::vector<Instr*> stack{made};
  while (!stack.empty()) {
    Instr* instr = stack.back();
    stack.pop_back();
    if (is_given(instr) || instr->id_ <= newer_than || !instr->nodes_.empty()) continue;
    instr->nodes_ = names;
    stack.insert(stack.end(), instr->operands_.begin(), instr->operands_.end());
  }
}

void Computation::hand_over_nodes(const Instr* from, Instr* to, const std::vector<Instr*>& users) {
  NodeNames names = from->nodes_;
  names.add(nodes_of_dying(from));
  if (names.empty()) return;
  if (is_shared(to)) {
    for (Instr* user : users)
      if (!is_shared(user)) user->nodes_.add(names);
    return;
  }
  name_new(to, names, from->id_);
  to->nodes_.add(names);
}

}  // namespace heddle::hlo
