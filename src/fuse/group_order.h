// Private to fuse: which kernel must run before which, while groups are built.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fuse/groups.h"

namespace heddle::fuse {

// Instructions are visited readers first. Every node (a group, or an instruction that is in none)
// has a height, larger than that of every node that reads it: a path from one node to another leads
// through heights between theirs only, so that looking for one stays local.
class GroupOrder {
 public:
  using GroupsOf = std::unordered_map<const Instr*, std::vector<Group*>>;
  explicit GroupOrder(const GroupsOf& group_of) : group_of_(group_of) {}

  void add_alone(Instr* instr);   // visited, and in no group
  void add_group(Group* group);   // of one member, that `group_of` knows
  void has_joined(Group* group);  // a new member, that `group_of` knows and that is no copy
  // `from` moved into `into`, as `group_of` knows; makes_cycle({from, into}) was false.
  void has_taken(Group* into, const Group& from);

  // If `instr`, read by `group`, became its member: would another node that reads `instr` have to
  // run before the group?
  bool makes_cycle(const Instr* instr, const Group* group) const;
  // If these groups were one: would a value go out of it and come back?
  bool makes_cycle(const std::vector<Group*>& row) const;

 private:
  template <typename Function>
  void for_each_node(const Instr* instr, Function&& function) const;
  template <typename Function>
  void for_each_reader(const Group& node, Function&& function) const;
  void raise(Group* node);
  void find_feeders(const Group& node, std::vector<Group*>* work) const;

  const GroupsOf& group_of_;
  std::unordered_map<const Instr*, std::unique_ptr<Group>> alone_;
};

}  // namespace heddle::fuse
