// Private to fuse: the order of kernels while groups are built: KernelOrder for instructions and
// groups.
#pragma once

#include <unordered_map>
#include <vector>

#include "fuse/groups.h"
#include "fuse/kernel_order.h"

namespace heddle::fuse {

// An instruction is a separate kernel until it joins a group. Instructions are visited readers
// first: all readers of an instruction are in their groups when it joins one or is copied into one.
class GroupOrder {
 public:
  using GroupsOf = std::unordered_map<const Instr*, std::vector<Group*>>;
  explicit GroupOrder(const Computation& computation)
      : instrs_(computation), order_(instrs_.graph) {}

  void add_group(Group* group);                       // of one member
  void has_joined(const Instr* instr, Group* group);  // makes_cycle(instr, group) was false
  // Readers in the group use a copy of it there, and read its operands.
  void has_copied(const Instr* instr, Group* group);
  // `from` moved into `into`, whose members and copies are up to date; makes_cycle({from, into})
  // was false.
  void has_taken(Group* into, const Group& from);

  // Whether a value would leave the group and come back if `instr` became a member.
  bool makes_cycle(const Instr* instr, const Group* group) const {
    return order_.makes_cycle({kernel(instr), group->kernel});
  }
  // The same if these groups became one.
  bool makes_cycle(const std::vector<Group*>& row) const;

 private:
  int kernel(const Instr* instr) const { return order_.kernel(instrs_.vertex(instr)); }
  InstrGraph instrs_;
  KernelOrder order_;
};

}  // namespace heddle::fuse
