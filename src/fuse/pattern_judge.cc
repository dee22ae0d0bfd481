#include "fuse/pattern_judge.h"

#include <algorithm>

#include "cost/rates.h"

namespace heddle::fuse {

namespace {

// Larger kernels gain too little from saving a call.
constexpr double kMostPackedBytes = 64 << 10;

}  // namespace

PatternJudge::PatternJudge(const SearchSpace& space, const target::Target& target,
                           PlacedFacts* facts, Pricing pricing)
    : space_(space),
      target_(target),
      facts_(*facts),
      pricing_(pricing),
      delta_(target),
      placed_before_(facts->placements()) {}

double PatternJudge::gain(const Members& members) {
  if (pricing_ == Pricing::calls)
    return static_cast<double>(members.size() - 1) * cost::call_ns(/*serial=*/true, 1, target_);
  double apart = 0;
  if (pricing_ == Pricing::latency) {
    for (int member : members) apart += judge({member}).ns;
    return apart - judge(members).ns;
  }
  for (int member : members) apart += alone_ns(member);
  return apart - delta_.kernel_ns(work_of(members));
}

// A set that is slower than its members one by one is no pattern: the delta evaluator could not
// know.
bool PatternJudge::can_build(const Members& members) {
  const Judged& judged = judge(members);
  if (!judged.builds || pricing_ == Pricing::calls) return judged.builds;
  double apart = 0;
  for (int member : members) apart += judge({member}).ns;
  return judged.ns < apart;
}

bool PatternJudge::pays(const Members& whole, const Members& a, const Members& b) {
  return pricing_ == Pricing::calls || judge(whole).ns < judge(a).ns + judge(b).ns;
}

uint64_t PatternJudge::packing_class(const Members& members) {
  constexpr uint64_t kMixed = 1;
  if (work_of(members).bytes > kMostPackedBytes) return 0;
  std::vector<uint64_t> first;
  for (int member : members) {
    const Instr* instr = space_.instr_of[static_cast<size_t>(member)];
    if (!space_.leaves(instr, members)) continue;
    std::vector<uint64_t> shape;
    add_shape(instr->shape(), &shape);
    if (!instr->shape().is_array() || (!first.empty() && shape != first)) return kMixed;
    first.swap(shape);
  }
  return std::max<uint64_t>(kMixed, hash64({reinterpret_cast<const char*>(first.data()),
                                            first.size() * sizeof(uint64_t)}));
}

cost::Work PatternJudge::work_of(const Members& members) const {
  cost::Work work;
  std::unordered_set<const Instr*> read;
  for (int member : members) {
    const Instr* instr = space_.instr_of[static_cast<size_t>(member)];
    delta_.add_operator(*instr, &work);
    add_reads(instr, members, &read, &work);
    if (space_.leaves(instr, members)) delta_.add_array(cost::bytes_of(instr->shape()), &work);
  }
  return work;
}

void PatternJudge::add_reads(const Instr* instr, const Members& members,
                             std::unordered_set<const Instr*>* read, cost::Work* work) const {
  for (const Instr* operand : instr->operands()) {
    if (space_.is_view(operand)) {
      add_reads(operand, members, read, work);
      continue;
    }
    if (std::binary_search(members.begin(), members.end(), space_.vertex(operand))) continue;
    if (!read->insert(operand).second) continue;
    double bytes = cost::bytes_of(operand->shape());
    if (space_.is_view(instr)) bytes = std::min(bytes, cost::bytes_of(instr->shape()));
    delta_.add_array(bytes, work);
  }
}

double PatternJudge::alone_ns(int vertex) {
  const auto [known, added] = alone_.try_emplace(vertex, 0);
  if (added) known->second = delta_.kernel_ns(work_of({vertex}));
  return known->second;
}

const Judged& PatternJudge::judge(const Members& members) {
  const auto [known, added] = by_members_.try_emplace(members);
  if (added)
    known->second = judge(
        space_.with_views(members),
        [&](const Instr* instr) { return !space_.is_view(instr) && space_.leaves(instr, members); },
        delta_.kernel_ns(work_of(members)));
  return known->second;
}

Judged PatternJudge::judge(const Group& group) {
  return judge(space_.in_order(group.members), space_.leaves_of(group),
               delta_.kernel_ns(work_of(space_.vertices_of(group, /*own=*/false))));
}

Judged PatternJudge::judge(const std::vector<Instr*>& instrs,
                           const std::function<bool(const Instr*)>& leaves, double delta_ns) {
  Judged judged;
  judged.ns = judged.delta_ns = delta_ns;
  const Facts facts = facts_.of(instrs, leaves);
  if (!facts.decision || facts.is_template) return judged;
  judged.ns = facts.ns;
  judged.builds = facts.has_tasks;
  // Data that would move across the lanes is transposed by a separate kernel.
  if (facts.strided > 0 && instrs.size() > 1) {
    int64_t apart = 0;
    for (Instr* instr : instrs) apart += facts_.of_alone(instr).strided;
    judged.builds &= facts.strided <= apart;
  }
  return judged;
}

}  // namespace heddle::fuse
