// A loop's counters are computed by other kernels of its step: groups of scalars move into one of
// the other groups.
#include <algorithm>

#include "cost/traffic.h"
#include "fuse/group_merger.h"

namespace heddle::fuse {

namespace {

constexpr size_t kMostAsked = 8;  // groups tried for a group of scalars
constexpr int kTasksOfCore = 4;

class ScalarMerger : public GroupMerger {
 public:
  using GroupMerger::GroupMerger;

  void visit(Group* scalars) {
    if (!is_scalars(*scalars) || cover_.stays(*scalars)) return;
    size_t asked = 0;
    for (const auto& group : cover_.groups) {
      Group* other = group.get();
      if (other == scalars || other->members.empty() || cover_.stays(*other) ||
          other->once != scalars->once || is_scalars(*other))
        continue;
      if (++asked > kMostAsked) return;
      const Decision decision = may_join(other, scalars);
      if (decision) return join(scalars, other);
      refuse(scalars->members.back(), other->members.back(), decision);
    }
  }

 private:
  static bool is_scalars(const Group& group) {
    return !group.members.empty() &&
           std::all_of(group.members.begin(), group.members.end(),
                       [](const Instr* member) { return member->shape().is_scalar(); });
  }

  // The other group must keep its phases, enough tasks, and its time.
  Decision may_join(Group* other, Group* scalars) const {
    if (Decision closed = is_closed({other, scalars}); !closed) return closed;
    const stage::PlacedFusion together = place({other, scalars}), apart = place({other});
    if (!together.decision) return together.decision;
    if (!apart.decision) return apart.decision;
    if (together.schedule.phases.size() != apart.schedule.phases.size() ||
        tasks(together) < std::min(tasks(apart), int64_t{kTasksOfCore} * target_.cores) ||
        cost::traffic_ns(together, target_) >
            cost::traffic_ns(apart, target_) + target_.serial_command_ns)
      return Decision::no("price", "{} phases, {} tasks, {:.0f} ns; separately {}, {}, {:.0f} ns",
                          together.schedule.phases.size(), tasks(together),
                          cost::traffic_ns(together, target_), apart.schedule.phases.size(),
                          tasks(apart), cost::traffic_ns(apart, target_));
    return Decision::yes();
  }

  static int64_t tasks(const stage::PlacedFusion& placed) {
    int64_t tasks = 1;
    for (const stage::ScheduleNode& node : placed.schedule.nodes)
      if (const auto* loop = std::get_if<stage::Loop>(&node);
          loop && loop->kind == stage::LoopKind::parallel)
        tasks *= loop->trips;
    return tasks;
  }
};

}  // namespace

Result<bool> merge_scalars(OpenCover& cover, const Context& context) {
  if (!cover.covered.is_body) return false;
  return visit_groups<ScalarMerger>(cover, context);
}

}  // namespace heddle::fuse
