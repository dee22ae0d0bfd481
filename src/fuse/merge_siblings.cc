// Groups that read the same arrays, or one another's results, become one kernel where that moves
// less (gradients of input, scale and shift; a loss and its gradient). A refusal because it does
// not pay has the code `price`.
#include <algorithm>
#include <optional>
#include <set>

#include "cost/few_tasks.h"
#include "fuse/group_merger.h"
#include "hlo/dim_classes.h"
#include "hlo/views.h"

namespace heddle::fuse {

namespace {

constexpr double kGain = 0.05;  // of the smaller one's time; packing of small ones costs nothing
constexpr size_t kMostMembers = 128;   // of a kernel
constexpr size_t kMostNeighbours = 8;  // that are tried for one group
// Readers of one array that are considered: each of them considers the others.
constexpr size_t kMostReaders = 512;
constexpr int64_t kLeastBytes = 4096;  // shared by two groups
// A group of kLarge members or more that kMostRefusals others in a row could not join is full: it
// would take the places of neighbours that can, and placing it takes long.
constexpr size_t kLarge = 32;
constexpr int kMostRefusals = 32;

class SiblingMerger : public GroupMerger {
 public:
  SiblingMerger(OpenCover* cover, const target::Target& target) : GroupMerger(cover, target) {
    for (const auto& group : cover_.groups)
      if (!group->members.empty() && !cover_.stays(*group)) may_.insert(group.get());
    const hlo::Module& module = *cover->computation()->module();
    const std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
    if (symbols.empty() || cover->computation() != module.entry()) return;
    classes_.emplace(module, hlo::DimClasses::Made::free);
    if (!classes_->assign(symbols)) classes_.reset();
  }

  void visit(Group* group) {
    if (!may_.count(group)) return;
    for (bool joined = true; joined;) {
      joined = false;
      for (Group* other : neighbours(*group)) {
        const Decision decision = may_join(group, other);
        if (decision) {
          join(other, group);
          may_.erase(other);
          refusals_.erase(group);
          joined = true;
          break;
        }
        if (other->members.size() >= kLarge) ++refusals_[other];
        refuse(other->members.back(), group->members.back(), decision);
      }
    }
  }

 private:
  bool is_full(const Group* group) const {
    const auto found = refusals_.find(group);
    return found != refusals_.end() && found->second >= kMostRefusals;
  }

  static int64_t bytes_of(const Instr* value) {
    return value->shape().is_array() ? value->shape().bytes() : kLeastBytes;
  }

  // Groups that read this one's inputs or results, or compute its inputs; the most shared bytes
  // first.
  std::vector<Group*> neighbours(const Group& group) const {
    std::unordered_map<Group*, int64_t> shared;
    std::unordered_set<const Instr*> seen;
    auto add = [&](const Instr* instr, int64_t bytes) {
      auto found = cover_.group_of.find(instr);
      if (found == cover_.group_of.end()) return;
      for (Group* other : found->second)
        if (other != &group && may_.count(other) && !is_full(other)) shared[other] += bytes;
    };
    for (const Instr* member : group.members) {
      for (const Instr* user : member->users()) add(user, bytes_of(member));
      for (const Instr* operand : member->operands()) {
        const Instr* array = hlo::behind_views_and_elements(operand);
        if (has(group, array) || bytes_of(array) < kLeastBytes || !seen.insert(array).second)
          continue;
        add(array, bytes_of(array));
        const std::vector<Instr*>& readers = array->users();
        for (size_t i = 0; i < std::min(readers.size(), kMostReaders); ++i)
          add(readers[i], bytes_of(array));
      }
    }
    std::vector<Group*> found;
    for (const auto& [other, bytes] : shared) found.push_back(other);
    std::sort(found.begin(), found.end(), [&](Group* a, Group* b) {
      const int64_t one = shared.at(a), two = shared.at(b);
      return one != two ? one > two
                        : cover_.index.at(a->members.back()) < cover_.index.at(b->members.back());
    });
    if (found.size() > kMostNeighbours) found.resize(kMostNeighbours);
    return found;
  }

  Decision may_join(Group* one, Group* other) {
    if (one->once != other->once)
      return Decision::no("once", "one side depends only on constants and is computed once");
    if (one->members.size() + other->members.size() > kMostMembers)
      return Decision::no("too-large", "the groups have {} members",
                          one->members.size() + other->members.size());
    if (Decision closed = is_closed({one, other}); !closed) return closed;
    const std::set<int> extents = extents_of(*one), others = extents_of(*other);
    if (!extents.empty() && !others.empty() && extents != others)
      return Decision::no("extents", "one loop cannot stop at the actual extents of both");
    const Facts together = facts({one, other});
    if (!together.decision) return together.decision;
    const Facts first = facts({one}), second = facts({other});
    if (!first.decision || !second.decision)
      return Decision::no("price", "one of them has no schedule by itself");
    if (few_tasks(together) && !(few_tasks(first) && few_tasks(second)))
      return Decision::no("one-task", "too few tasks for both");
    if (together.strided > first.strided + second.strided)
      return Decision::no("across-lanes", "less data crosses the lanes if they are separate");
    const double apart = first.traffic_ns + second.traffic_ns;
    // The gain is of the smaller group: one that reads a large one cannot save much of both. Maps
    // over one index space are one loop and save a launch; where a launch is nothing beside their
    // time, accessing more arrays at once is worse (an optimizer's tensors of one shape, which
    // become a table).
    const double smaller_ns = std::min(first.traffic_ns, second.traffic_ns);
    const bool saves_launch = together.is_packing && kGain * smaller_ns < target_.serial_command_ns;
    const double gain = saves_launch ? 0 : kGain * smaller_ns;
    if (together.traffic_ns >= apart - gain)
      return Decision::no("price", "together {:.0f} ns, separately {:.0f} ns", together.traffic_ns,
                          apart);
    return Decision::yes();
  }

  // The symbols of the dimensions of the group's values.
  std::set<int> extents_of(const Group& group) const {
    std::set<int> found;
    if (!classes_) return found;
    for (const Instr* member : group.members)
      for (int64_t d = 0; member->shape().is_array() && d < member->shape().rank(); ++d)
        if (const int symbol = classes_->symbol_of(member, d); symbol >= 0) found.insert(symbol);
    return found;
  }

  bool few_tasks(const Facts& facts) const {
    return cost::leaves_cores_idle(facts.tasks, facts.elems, target_);
  }

  std::optional<hlo::DimClasses> classes_;  // of a module that has symbols
  std::unordered_set<const Group*> may_;
  std::unordered_map<const Group*, int> refusals_;  // of large groups, since they last grew
};

}  // namespace

Result<bool> merge_siblings(OpenCover& cover, const Context& context) {
  return visit_groups<SiblingMerger>(cover, context);
}

}  // namespace heddle::fuse
