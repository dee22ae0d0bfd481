// Names of nodes in a rewriting: what is put in the place of something takes its names.
#include <unordered_set>

#include "hlo/module.h"

namespace heddle::hlo {
namespace {

// What no command computes: its names are those of who reads it.
bool is_given(const Instr* instr) {
  return instr->is(Opcode::parameter) || instr->is(Opcode::constant);
}

// Nor what repeats a constant: equal ones are merged, and each kernel that reads one would carry
// the names of all layers.
bool is_shared(const Instr* instr) {
  return is_given(instr) ||
         (instr->is(Opcode::broadcast) && instr->operand(0)->is(Opcode::constant));
}

}  // namespace

// Its names and those of the instructions that only it used, where nobody uses it any more. Empty
// at little cost where nothing has names.
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

// `made` and what it reads, as far as it is newer than what it was made for and without names.
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
