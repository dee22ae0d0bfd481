#include "fuse/worth.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cost/delta.h"
#include "fuse/regions.h"

namespace heddle::fuse {

namespace {

// Larger kernels gain too little from saving a call.
constexpr double kSmallBytes = 64 << 10;
// Nanoseconds of a run. The search requests a few schedules per operator, which take about a
// millisecond together; a program that runs less than a hundred thousand times need not be the
// best.
constexpr double kLeastGainByOperator = 10;

struct Region {
  std::vector<int> groups;
  double ns = 0;
  double least_ns = 0;  // to read its inputs and write its outputs, in one call
  double operators = 0;
  std::vector<uint64_t> signature;
};

class Worth {
 public:
  Worth(const std::vector<Group*>& groups, const target::Target& target)
      : groups_(groups), target_(target), delta_(target), regions_(groups.size()) {
    for (size_t g = 0; g < groups.size(); ++g)
      for (const Instr* member : groups[g]->members)
        if (!groups[g]->copies.count(member)) maker_.emplace(member, static_cast<int>(g));
  }

  std::vector<bool> run(const SearchOptions& options,
                        const std::function<RegionGroup(Group*)>& judge) {
    std::vector<bool> stay(groups_.size(), true);
    const std::vector<Region> regions = find_regions(options.remote, judge);
    std::map<std::vector<uint64_t>, double> equal;  // how many there are
    for (const Region& region : regions) equal[region.signature] += 1;
    for (const Region& region : regions) {
      const double saved = region.ns - region.least_ns;
      if (saved < options.least_gain_ns || region.ns < options.least_gain * region.least_ns ||
          saved * equal[region.signature] < kLeastGainByOperator * region.operators)
        continue;
      for (int g : region.groups) stay[static_cast<size_t>(g)] = false;
    }
    return stay;
  }

 private:
  std::vector<Region> find_regions(bool remote, const std::function<RegionGroup(Group*)>& judge) {
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const Instr* member : groups_[g]->members)
        for (const Instr* array : arrays_of(member))
          if (const auto made = maker_.find(array); made != maker_.end())
            regions_.unite(static_cast<int>(g), made->second);
    std::map<int, std::vector<int>> members;
    for (size_t g = 0; g < groups_.size(); ++g)
      members[regions_.of(static_cast<int>(g))].push_back(static_cast<int>(g));
    std::vector<Region> regions;
    std::vector<int> packed;
    for (auto& [root, groups] : members) {
      if (groups.size() > 1)
        regions.push_back(region_of(std::move(groups), judge));
      else if (remote && is_small(groups[0]))
        packed.push_back(groups[0]);
    }
    if (packed.size() > 1) regions.push_back(region_of(std::move(packed), judge));
    return regions;
  }

  bool is_small(int group) const {
    double bytes = 0;
    for (const Instr* member : groups_[static_cast<size_t>(group)]->members)
      bytes = std::max(bytes, cost::bytes_of(member->shape()));
    return bytes <= kSmallBytes;
  }

  Region region_of(std::vector<int> groups, const std::function<RegionGroup(Group*)>& judge) {
    Region region;
    cost::Work work;
    std::unordered_set<const Instr*> read;
    for (int g : groups) {
      Group* group = groups_[static_cast<size_t>(g)];
      const RegionGroup judged = judge(group);
      region.ns += judged.facts.decision ? judged.facts.ns : 0;
      region.signature.push_back(judged.signature.low);
      region.signature.push_back(judged.signature.high);
      for (const Instr* member : group->members) {
        const bool whole = has_trait(member->opcode(), hlo::elementwise) ||
                           member->is(Opcode::reduce) || member->is(Opcode::reduce_window);
        for (const Instr* array : arrays_of(member)) {
          if (maker_.count(array) || !read.insert(array).second) continue;
          const double bytes = cost::bytes_of(array->shape());
          delta_.add_array(whole ? bytes : std::min(bytes, cost::bytes_of(member->shape())), &work);
        }
        if (group->copies.count(member)) continue;
        ++region.operators;
        if (leaves(member)) delta_.add_array(cost::bytes_of(member->shape()), &work);
      }
    }
    region.least_ns = cost::call_ns(/*serial=*/true, 1, target_) + work.moved_all_ns;
    region.groups = std::move(groups);
    return region;
  }

  // The arrays that an instruction reads, through views that no group computes.
  std::vector<const Instr*> arrays_of(const Instr* instr) const {
    std::vector<const Instr*> found, work{instr};
    for (size_t i = 0; i < work.size(); ++i) {
      for (const Instr* operand : work[i]->operands()) {
        const bool view =
            !maker_.count(operand) && is_duplicable(operand) && !operand->operands().empty();
        std::vector<const Instr*>& to = view ? work : found;
        if (std::find(to.begin(), to.end(), operand) == to.end()) to.push_back(operand);
      }
    }
    return found;
  }

  // Whether anything outside of the groups reads it, directly or through views.
  bool leaves(const Instr* instr) const {
    std::vector<const Instr*> work{instr};
    for (size_t i = 0; i < work.size(); ++i) {
      if (work[i]->users().empty()) return true;
      for (const Instr* user : work[i]->users()) {
        if (maker_.count(user)) continue;
        if (!is_duplicable(user)) return true;
        if (std::find(work.begin(), work.end(), user) == work.end()) work.push_back(user);
      }
    }
    return false;
  }

  const std::vector<Group*>& groups_;
  const target::Target& target_;
  const cost::DeltaEvaluator delta_;
  Regions regions_;
  std::unordered_map<const Instr*, int> maker_;
};

}  // namespace

std::vector<bool> groups_without_gain(const std::vector<Group*>& groups,
                                      const target::Target& target, const SearchOptions& options,
                                      const std::function<RegionGroup(Group*)>& judge) {
  return Worth(groups, target).run(options, judge);
}

}  // namespace heddle::fuse
