#include "fuse/group_order.h"

#include <algorithm>
#include <unordered_set>

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

// The nodes that read what the node gives out: a copy is read by nobody outside, and who has one
// reads that.
template <typename Function>
void GroupOrder::for_each_reader(const Group& node, Function&& function) const {
  for (const Instr* member : node.members) {
    if (node.copies.count(member)) continue;
    for (const Instr* user : member->users())
      for_each_node(user, [&](Group* reader) {
        if (reader != &node && !reader->copies.count(member)) function(reader);
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

void GroupOrder::has_taken(Group* into, const Group& from) {
  into->height = std::max(into->height, from.height);
  std::vector<Group*> feeders;
  find_feeders(*into, &feeders);
  for (Group* feeder : feeders) raise(feeder);
}

// Those that feed the node and are not above it.
void GroupOrder::find_feeders(const Group& node, std::vector<Group*>* work) const {
  for (const Instr* member : node.members)
    for (const Instr* operand : member->operands())
      for_each_node(operand, [&](Group* feeder) {
        if (feeder != &node && feeder->height <= node.height) work->push_back(feeder);
      });
}

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
    find_feeders(*at, &work);
  }
}

bool GroupOrder::makes_cycle(const std::vector<Group*>& row) const {
  const std::unordered_set<const Group*> inside(row.begin(), row.end());
  const int64_t least = (*std::min_element(row.begin(), row.end(), [](Group* a, Group* b) {
                          return a->height < b->height;
                        }))->height;
  std::unordered_set<const Group*> seen;
  std::vector<const Group*> work;
  auto reach = [&](const Group* node) {
    if (node->height > least && !inside.count(node) && seen.insert(node).second)
      work.push_back(node);
  };
  for (const Group* group : row) for_each_reader(*group, reach);
  while (!work.empty()) {
    const Group* at = work.back();
    work.pop_back();
    bool back = false;
    for_each_reader(*at, [&](const Group* reader) {
      back |= inside.count(reader) > 0;
      reach(reader);
    });
    if (back) return true;
  }
  return false;
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
