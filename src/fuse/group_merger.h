// Private to fuse: what the passes behind the cover share, in which one group moves into another.
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

  // The one group that `instr` is in, if it has a product with a template; else null.
  Group* product_group(const Instr* instr) const;
  // All as one kernel. What one has a copy of and another computes for everybody is no copy.
  stage::PlacedFusion place(const Row& row) const;
  // What can be said of that, asked once for all that differ in names only.
  Facts facts(const Row& row);
  // Code `cycle`: a value would go out of them and come back. Asked before every join().
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

// A pass that asks every group in turn: Merger::visit(group).
template <typename Merger, typename... Arguments>
Result<bool> visit_groups(OpenCover& cover, const Context& context, Arguments... arguments) {
  HEDDLE_RETURN_IF_ERROR(check_merges(cover));
  Merger merger(&cover, *context.target, arguments...);
  for (const auto& group : cover.groups)
    if (!group->members.empty()) merger.visit(group.get());
  return merger.changed();
}

}  // namespace heddle::fuse
