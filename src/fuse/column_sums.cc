#include "fuse/column_sums.h"

#include <algorithm>

namespace heddle::fuse {

namespace {

class SumMerger {
 public:
  SumMerger(GroupOrder::GroupsOf* group_of, const std::unordered_map<const Instr*, size_t>& index,
            const target::Target& target, std::vector<Refusal>* refusals)
      : group_of_(*group_of), index_(index), target_(target), refusals_(refusals) {}

  void visit(Group* sums) {
    const bool reduces = std::any_of(sums->members.begin(), sums->members.end(),
                                     [](const Instr* x) { return x->is(Opcode::reduce); });
    if (!reduces || sums->has_dot || sums->once) return;
    for (const Instr* member : std::vector<Instr*>(sums->members)) {
      for (Instr* operand : member->operands()) {
        if (has(*sums, operand)) continue;
        auto found = group_of_.find(operand);
        if (found == group_of_.end() || found->second.size() != 1) continue;
        Group* product = found->second[0];
        if (!product->has_gemm || product->once) continue;
        const Decision decision = may_join(product, sums);
        if (decision) return join(product, sums);
        if (refusals_)
          refusals_->push_back(
              {operand->name(), sums->members.back()->name(), decision.code(), decision.reason()});
        return;
      }
    }
  }

 private:
  static bool has(const Group& group, const Instr* instr) {
    return std::find(group.members.begin(), group.members.end(), instr) != group.members.end();
  }

  // Does a kernel stand between the two, behind one and before the other?
  bool is_between(const Group& first, const Group& second) const {
    std::vector<const Instr*> work;
    std::unordered_set<const Instr*> seen;
    std::unordered_set<const Group*> opened;
    auto push_users = [&](const Instr* instr) {
      for (const Instr* user : instr->users())
        if (!has(first, user) && !has(second, user) && seen.insert(user).second)
          work.push_back(user);
    };
    for (const Instr* member : first.members) push_users(member);
    while (!work.empty()) {
      const Instr* instr = work.back();
      work.pop_back();
      std::vector<const Instr*> kernel{instr};
      if (auto found = group_of_.find(instr); found != group_of_.end())
        for (const Group* group : found->second)
          if (opened.insert(group).second)
            kernel.insert(kernel.end(), group->members.begin(), group->members.end());
      for (const Instr* member : kernel) {
        for (const Instr* user : member->users())
          if (has(second, user)) return true;
        push_users(member);
      }
    }
    return false;
  }

  // A copy in one of the two, unless the other computes it for everybody.
  static std::unordered_set<const Instr*> copies_of(const Group& first, const Group& second) {
    std::unordered_set<const Instr*> copies;
    for (const auto& [one, other] : {std::pair(&first, &second), std::pair(&second, &first)})
      for (const Instr* copy : one->copies)
        if (!has(*other, copy) || other->copies.count(copy)) copies.insert(copy);
    return copies;
  }

  std::vector<Instr*> members_of(const Group& first, const Group& second) const {
    std::vector<Instr*> members = first.members;
    members.insert(members.end(), second.members.begin(), second.members.end());
    std::sort(members.begin(), members.end(),
              [&](const Instr* a, const Instr* b) { return index_.at(a) < index_.at(b); });
    members.erase(std::unique(members.begin(), members.end()), members.end());
    return members;
  }

  Decision may_join(const Group* product, const Group* sums) const {
    const std::vector<Instr*> members = members_of(*product, *sums);
    const std::unordered_set<const Instr*> inside(members.begin(), members.end());
    const auto copies = copies_of(*product, *sums);
    std::unique_ptr<hlo::Module> candidate = extract(members, [&](const Instr* member) {
      if (copies.count(member)) return false;
      if (member == member->parent()->root()) return true;
      return std::any_of(member->users().begin(), member->users().end(),
                         [&](const Instr* user) { return inside.count(user) == 0; });
    });
    const schedule::PlacedFusion placed = schedule::place(*candidate->entry(), target_);
    if (!placed.decision) return placed.decision;
    if (!schedule::is_gemm(placed) || schedule::is_chain(placed))
      return Decision::no("gemm-family", "the dot would lose its template");
    if (is_between(*product, *sums))
      return Decision::no("cycle", "a value would go out of the kernel and come back");
    return Decision::yes();
  }

  void join(Group* product, Group* sums) {
    product->copies = copies_of(*product, *sums);
    const std::vector<Instr*> members = members_of(*product, *sums);
    for (const Instr* member : sums->members) {
      std::vector<Group*>& groups = group_of_.at(member);
      groups.erase(std::find(groups.begin(), groups.end(), sums));
      if (std::find(groups.begin(), groups.end(), product) == groups.end())
        groups.push_back(product);
    }
    product->members = members;
    sums->members.clear();
  }

  GroupOrder::GroupsOf& group_of_;
  const std::unordered_map<const Instr*, size_t>& index_;
  const target::Target& target_;
  std::vector<Refusal>* refusals_;
};

}  // namespace

void merge_column_sums(const std::vector<std::unique_ptr<Group>>& groups,
                       GroupOrder::GroupsOf* group_of,
                       const std::unordered_map<const Instr*, size_t>& index,
                       const target::Target& target, std::vector<Refusal>* refusals) {
  SumMerger merger(group_of, index, target, refusals);
  for (const auto& group : groups)
    if (!group->members.empty()) merger.visit(group.get());
}

}  // namespace heddle::fuse
