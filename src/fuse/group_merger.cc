#include "fuse/group_merger.h"

#include <algorithm>
#include "schedule/place.h"

namespace heddle::fuse {

Group* GroupMerger::product_group(const Instr* instr) const {
  const auto found = cover_.group_of.find(instr);
  if (found == cover_.group_of.end() || found->second.size() != 1) return nullptr;
  Group* group = found->second[0];
  return group->has_gemm && !group->once ? group : nullptr;
}

std::unordered_set<const Instr*> GroupMerger::copies_of(const Row& row) {
  std::unordered_set<const Instr*> copies;
  for (const Group* group : row)
    for (const Instr* copy : group->copies)
      if (std::all_of(row.begin(), row.end(), [&](const Group* other) {
            return other->copies.count(copy) > 0 || !has(*other, copy);
          }))
        copies.insert(copy);
  return copies;
}

std::vector<Instr*> GroupMerger::members_in(const Row& row) const {
  std::vector<Instr*> members;
  for (const Group* group : row)
    members.insert(members.end(), group->members.begin(), group->members.end());
  return cover_.in_order(std::move(members));
}

// The members that are read outside of the row, as rebuild() will decide.
std::unordered_set<const Instr*> GroupMerger::leaving(const Row& row) const {
  const auto copies = copies_of(row);
  auto is_read = [&](const Instr* member) {
    if (member == member->parent()->root()) return true;
    return std::any_of(member->users().begin(), member->users().end(), [&](const Instr* user) {
      const auto found = cover_.group_of.find(user);
      if (found == cover_.group_of.end()) return true;
      return std::any_of(found->second.begin(), found->second.end(), [&](const Group* group) {
        return std::find(row.begin(), row.end(), group) == row.end() && !has(*group, member);
      });
    });
  };
  std::unordered_set<const Instr*> found;
  for (const Group* group : row)
    for (const Instr* member : group->members)
      if (!copies.count(member) && is_read(member)) found.insert(member);
  return found;
}

namespace {

template <typename Answer>
Answer unread() {
  Answer answer;
  answer.decision = Decision::no("unread", "every reader has a copy by now");
  return answer;
}

}  // namespace

stage::PlacedFusion GroupMerger::place(const Row& row) const {
  const auto outputs = leaving(row);
  if (outputs.empty()) return unread<stage::PlacedFusion>();
  const auto leaves = [&](const Instr* member) { return outputs.count(member) > 0; };
  return schedule::place(members_of(members_in(row), leaves), target_);
}

Facts GroupMerger::facts(const Row& row) {
  const auto outputs = leaving(row);
  if (outputs.empty()) return unread<Facts>();
  return facts_.of(members_in(row), [&](const Instr* member) { return outputs.count(member) > 0; });
}

Decision GroupMerger::is_closed(const Row& row) const {
  if (cover_.order->makes_cycle(row))
    return Decision::no("cycle", "a value would go out of the kernel and come back");
  return Decision::yes();
}

void GroupMerger::join(Group* from, Group* to) {
  std::vector<Instr*> members = members_in({from, to});
  to->copies = copies_of({from, to});
  to->has_dot |= from->has_dot;
  for (const Instr* member : from->members) {
    std::vector<Group*>& groups = cover_.group_of.at(member);
    groups.erase(std::find(groups.begin(), groups.end(), from));
    if (std::find(groups.begin(), groups.end(), to) == groups.end()) groups.push_back(to);
  }
  to->members = std::move(members);
  from->members.clear();
  changed_ = true;
  cover_.order->has_taken(to, *from);
}

Status check_merges(const OpenCover& cover) {
  if (!cover.is_settled) return {};
  return user_error("nothing merges after limit_memory or search_cover");
}

}  // namespace heddle::fuse
