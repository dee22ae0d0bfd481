// Private to fuse: what the passes behind the cover share, in which one group moves into another.
#pragma once

#include <memory>
#include <vector>

#include "fuse/group_order.h"
#include "fuse/groups.h"

namespace heddle::fuse {

class GroupMerger {
 public:
  GroupMerger(GroupOrder::GroupsOf* group_of, const std::unordered_map<const Instr*, size_t>& index,
              const target::Target& target, std::vector<Refusal>* refusals)
      : target_(target), group_of_(*group_of), index_(index), refusals_(refusals) {}

 protected:
  static bool has(const Group& group, const Instr* instr);
  // The one group that `instr` is in, if it has a product with a template; else null.
  Group* product_group(const Instr* instr) const;
  // Both as one kernel. What one has a copy of and the other computes for everybody is no copy.
  struct Both {
    std::unique_ptr<hlo::Module> module;  // that the stages point into
    schedule::PlacedFusion placed;
  };
  Both place_both(const Group& first, const Group& second) const;
  // `from` moves into `to`, and is left without members.
  void join(Group* from, Group* to);
  void refuse(const Instr* producer, const Instr* consumer, const Decision& decision);

  const target::Target& target_;

 private:
  static std::unordered_set<const Instr*> copies_of(const Group& first, const Group& second);
  std::vector<Instr*> members_of(const Group& first, const Group& second) const;

  GroupOrder::GroupsOf& group_of_;
  const std::unordered_map<const Instr*, size_t>& index_;
  std::vector<Refusal>* refusals_;
};

}  // namespace heddle::fuse
