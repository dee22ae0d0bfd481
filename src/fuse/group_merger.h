// Private to fuse: the common part of the passes after the cover that move one group into another.
#pragma once

#include <vector>

#include "fuse/open_cover.h"

namespace heddle::fuse {

class GroupMerger {
 public:
  GroupMerger(OpenCover* cover, const target::Target& target)
      : cover_(*cover), target_(target), facts_(target, /*with_traffic=*/true) {}
  bool changed() const { return changed_; }

 protected:
  using Row = std::vector<Group*>;

  // The only group of `instr`, if it has a product with a template; else null.
  Group* product_group(const Instr* instr) const;
  // Places all groups as one kernel. An instruction that one group copies and another computes for
  // all readers is not a copy.
  stage::PlacedFusion place(const Row& row) const;
  // The facts about that kernel, computed once for all kernels that differ in names only.
  Facts facts(const Row& row);
  // Code `cycle`: a value would leave the groups and come back. Call it before every join().
  Decision is_closed(const Row& row) const;
  // `from` moves into `to`, and is left without members.
  void join(Group* from, Group* to);
  void refuse(const Instr* producer, const Instr* consumer, const Decision& decision) {
    cover_.refuse(producer, consumer, decision);
  }
  static std::unordered_set<const Instr*> copies_of(const Row& row);
  std::vector<Instr*> members_in(const Row& row) const;

  OpenCover& cover_;
  const target::Target& target_;
  bool changed_ = false;

 private:
  std::unordered_set<const Instr*> leaving(const Row& row) const;

  PlacedFacts facts_;
};

// Error (user): limit_memory or search_cover has run, so nothing merges any more.
Status check_merges(const OpenCover& cover);

// A pass that calls Merger::visit(group) for every group.
template <typename Merger, typename... Arguments>
Result<bool> visit_groups(OpenCover& cover, const Context& context, Arguments... arguments) {
  HEDDLE_RETURN_IF_ERROR(check_merges(cover));
  Merger merger(&cover, *context.target, arguments...);
  for (const auto& group : cover.groups)
    if (!group->members.empty()) merger.visit(group.get());
  return merger.changed();
}

}  // namespace heddle::fuse
