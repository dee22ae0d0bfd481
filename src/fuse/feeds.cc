#include "fuse/feeds.h"

#include <algorithm>

namespace heddle::fuse {

namespace {

// Whether a path inside the group leads from `instr` to a member that `is_sought`.
template <typename Sought>
bool feeds(const Instr* instr, const Group& group, Sought&& is_sought) {
  std::unordered_set<const Instr*> reached{instr};
  for (const Instr* member : group.members) {
    const bool reads = std::any_of(member->operands().begin(), member->operands().end(),
                                   [&](Instr* operand) { return reached.count(operand) > 0; });
    if (reads && is_sought(member)) return true;
    if (reads) reached.insert(member);
  }
  return false;
}

}  // namespace

bool feeds_dot(const Instr* instr, const Group& group) { return feeds(instr, group, is_product); }

bool feeds_window(const Instr* instr, const Group& group) {
  return feeds(instr, group, [](const Instr* member) {
    return member->is(Opcode::reduce_window) || member->is(Opcode::gather);
  });
}

bool reduces(const Group& group) {
  return std::any_of(group.members.begin(), group.members.end(),
                     [](const Instr* member) { return member->is(Opcode::reduce); });
}

}  // namespace heddle::fuse
