// Private to fuse: what the passes behind the cover share, in which one group moves into another.
#pragma once

#include <memory>
#include <vector>

#include "fuse/group_order.h"
#include "fuse/groups.h"
#include "fuse/placed_facts.h"

namespace heddle::fuse {

// What such a pass works on. All but `target` change with every join.
struct Grouped {
  const std::vector<std::unique_ptr<Group>>& groups;
  GroupOrder::GroupsOf& group_of;
  GroupOrder& order;
  const std::unordered_map<const Instr*, size_t>& index;  // place in the computation
  const target::Target& target;
  std::vector<Refusal>* refusals;  // may be null
};

class GroupMerger {
 public:
  explicit GroupMerger(const Grouped& grouped)
      : grouped_(grouped), target_(grouped.target), facts_(grouped.target, /*with_traffic=*/true) {}

 protected:
  using Row = std::vector<Group*>;

  static bool has(const Group& group, const Instr* instr);
  // The one group that `instr` is in, if it has a product with a template; else null.
  Group* product_group(const Instr* instr) const;
  // All as one kernel. What one has a copy of and another computes for everybody is no copy.
  struct Placed {
    std::unique_ptr<hlo::Module> module;  // that the stages point into
    schedule::PlacedFusion placed;
  };
  Placed place(const Row& row) const;
  // What can be said of that without it, asked once for all that differ in names only.
  Facts facts(const Row& row);
  // Code `cycle`: a value would go out of them and come back. Asked before every join().
  Decision is_closed(const Row& row) const;
  // `from` moves into `to`, and is left without members.
  void join(Group* from, Group* to);
  void refuse(const Instr* producer, const Instr* consumer, const Decision& decision);

  const Grouped& grouped_;
  const target::Target& target_;

 private:
  static std::unordered_set<const Instr*> copies_of(const Row& row);
  std::vector<Instr*> members_of(const Row& row) const;
  bool leaves(const Instr* member, const Row& row) const;

  PlacedFacts facts_;
};

}  // namespace heddle::fuse
