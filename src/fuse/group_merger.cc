#include "fuse/group_merger.h"

#include <algorithm>

namespace heddle::fuse {

bool GroupMerger::has(const Group& group, const Instr* instr) {
  return std::find(group.members.begin(), group.members.end(), instr) != group.members.end();
}

Group* GroupMerger::product_group(const Instr* instr) const {
  const auto found = group_of_.find(instr);
  if (found == group_of_.end() || found->second.size() != 1) return nullptr;
  Group* group = found->second[0];
  return group->has_gemm && !group->once ? group : nullptr;
}

std::unordered_set<const Instr*> GroupMerger::copies_of(const Group& first, const Group& second) {
  std::unordered_set<const Instr*> copies;
  for (const auto& [one, other] : {std::pair(&first, &second), std::pair(&second, &first)})
    for (const Instr* copy : one->copies)
      if (!has(*other, copy) || other->copies.count(copy)) copies.insert(copy);
  return copies;
}

std::vector<Instr*> GroupMerger::members_of(const Group& first, const Group& second) const {
  std::vector<Instr*> members = first.members;
  members.insert(members.end(), second.members.begin(), second.members.end());
  std::sort(members.begin(), members.end(),
            [&](const Instr* a, const Instr* b) { return index_.at(a) < index_.at(b); });
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

GroupMerger::Both GroupMerger::place_both(const Group& first, const Group& second) const {
  const std::vector<Instr*> members = members_of(first, second);
  const std::unordered_set<const Instr*> inside(members.begin(), members.end());
  const auto copies = copies_of(first, second);
  std::unique_ptr<hlo::Module> candidate = extract(members, [&](const Instr* member) {
    if (copies.count(member)) return false;
    if (member == member->parent()->root()) return true;
    return std::any_of(member->users().begin(), member->users().end(),
                       [&](const Instr* user) { return inside.count(user) == 0; });
  });
  schedule::PlacedFusion placed = schedule::place(*candidate->entry(), target_);
  return {std::move(candidate), std::move(placed)};
}

void GroupMerger::join(Group* from, Group* to) {
  to->copies = copies_of(*from, *to);
  to->has_dot |= from->has_dot;
  const std::vector<Instr*> members = members_of(*from, *to);
  for (const Instr* member : from->members) {
    std::vector<Group*>& groups = group_of_.at(member);
    groups.erase(std::find(groups.begin(), groups.end(), from));
    if (std::find(groups.begin(), groups.end(), to) == groups.end()) groups.push_back(to);
  }
  to->members = members;
  from->members.clear();
}

void GroupMerger::refuse(const Instr* producer, const Instr* consumer, const Decision& decision) {
  if (refusals_)
    refusals_->push_back({producer->name(), consumer->name(), decision.code(), decision.reason()});
}

}  // namespace heddle::fuse
