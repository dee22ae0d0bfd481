// Private to fuse: which kernel must run before which, while groups are built: KernelOrder for
// instructions and groups.
#pragma once

#include <unordered_map>
#include <vector>

#include "fuse/groups.h"
#include "fuse/kernel_order.h"

namespace heddle::fuse {

// An instruction is a kernel by itself until it joins a group. Instructions are visited readers
// first: all that read an instruction are in their groups when it joins one or is copied into one.
class GroupOrder {
 public:
  using GroupsOf = std::unordered_map<const Instr*, std::vector<Group*>>;
  explicit GroupOrder(const Computation& computation)
      : instrs_(computation), order_(instrs_.graph) {}

  void add_group(Group* group);                       // of one member
  void has_joined(const Instr* instr, Group* group);  // makes_cycle(instr, group) was false
  // Readers in the group have a copy of it there, and read what it reads.
  void has_copied(const Instr* instr, Group* group);
  // `from` moved into `into`, as the members and copies of this say; makes_cycle({from, into}) was
  // false.
  void has_taken(Group* into, const Group& from);

  // If `instr` became a member: would a value go out of the group and come back?
  bool makes_cycle(const Instr* instr, const Group* group) const {
    return order_.makes_cycle({kernel(instr), group->kernel});
  }
  // If these groups were one.
  bool makes_cycle(const std::vector<Group*>& row) const;

 private:
  int kernel(const Instr* instr) const { return order_.kernel(instrs_.vertex(instr)); }
  InstrGraph instrs_;
  KernelOrder order_;
};

}  // namespace heddle::fuse
