#include "fuse/group_order.h"

#include <algorithm>

namespace heddle::fuse {

// The nodes that hold a visited instruction; none where it was not visited yet.
template <typename Function>
void GroupOrder::for_each_node(const Instr* instr, Function&& function) const {
  if (auto found = group_of_.find(instr); found != group_of_.end()) {
    for (Group* group : found->second) function(group);
  } else if (auto alone = alone_.find(instr); alone != alone_.end()) {
    function(alone->second.get());
  }
}

// The nodes that read what the node gives out: a copy is read by nobody outside.
template <typename Function>
void GroupOrder::for_each_reader(const Group& node, Function&& function) const {
  for (const Instr* member : node.members) {
    if (node.copies.count(member)) continue;
    for (const Instr* user : member->users())
      for_each_node(user, [&](Group* reader) {
        if (reader != &node) function(reader);
      });
  }
}

void GroupOrder::add_alone(Instr* instr) {
  auto node = std::make_unique<Group>();
  node->members = {instr};
  raise(alone_.emplace(instr, std::move(node)).first->second.get());
}

void GroupOrder::add_group(Group* group) { raise(group); }
void GroupOrder::has_joined(Group* group) { raise(group); }

void GroupOrder::raise(Group* node) {
  std::vector<Group*> work{node};
  while (!work.empty()) {
    Group* at = work.back();
    work.pop_back();
    int64_t height = at->height;
    for_each_reader(*at,
                    [&](const Group* reader) { height = std::max(height, reader->height + 1); });
    if (height == at->height) continue;
    at->height = height;
    for (const Instr* member : at->members)
      for (const Instr* operand : member->operands())
        for_each_node(operand, [&](Group* feeder) {
          if (feeder != at && feeder->height <= height) work.push_back(feeder);
        });
  }
}

bool GroupOrder::makes_cycle(const Instr* instr, const Group* group) const {
  std::unordered_set<const Group*> seen;
  std::vector<const Group*> work;
  bool found = false;
  auto reach = [&](const Group* node) {
    found |= node == group;
    if (node->height > group->height && seen.insert(node).second) work.push_back(node);
  };
  for (const Instr* user : instr->users())
    for_each_node(user, [&](const Group* node) {
      if (node != group) reach(node);
    });
  while (!work.empty() && !found) {
    const Group* at = work.back();
    work.pop_back();
    for_each_reader(*at, reach);
  }
  return found;
}

}  // namespace heddle::fuse
