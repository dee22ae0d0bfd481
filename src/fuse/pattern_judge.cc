#include "fuse/pattern_judge.h"

#include <algorithm>

#include "cost/latency.h"
#include "schedule/parts.h"
#include "schedule/place.h"
#include "schedule/strides.h"

namespace heddle::fuse {

namespace {

// Larger kernels than this gain nothing worth having from a call saved.
constexpr double kMostPackedBytes = 64 << 10;

// Several stages in the tasks of one: a reduction that many cores could share stays apart.
bool has_tasks(const schedule::PlacedFusion& placed, const cost::Latency& latency,
               const target::Target& target) {
  constexpr int64_t kFewElems = 32768;
  if (placed.graph.stages.size() < 2 || latency.phases.empty()) return true;
  int64_t elems = 0;
  bool reduces = false;
  for (const schedule::Stage& stage : placed.graph.stages) {
    elems = std::max(elems, stage.out_elems() * stage.red_elems());
    reduces |= stage.is_reduction();
  }
  const auto longest =
      std::max_element(latency.phases.begin(), latency.phases.end(),
                       [](const cost::PhaseLatency& a, const cost::PhaseLatency& b) {
                         return a.compute_ns < b.compute_ns;
                       });
  return !reduces || elems <= kFewElems || longest->tasks >= 2 * cost::core_count(target);
}

void add_computation(const Computation& computation, std::vector<uint64_t>* words);

void add_shape(const tensor::Shape& shape, std::vector<uint64_t>* words) {
  words->push_back(static_cast<uint64_t>(shape.type()));
  for (const tensor::Shape& element : shape.elements()) add_shape(element, words);
  words->push_back(shape.dims().size());
  for (int64_t extent : shape.is_array() ? shape.extents() : std::vector<int64_t>())
    words->push_back(static_cast<uint64_t>(extent));
}

void add_instr(const Instr& instr, std::unordered_map<const Instr*, uint64_t>* numbers,
               std::vector<uint64_t>* words) {
  words->push_back(static_cast<uint64_t>(instr.opcode()));
  words->push_back(hlo::hash(instr.attrs()));
  add_shape(instr.shape(), words);
  words->push_back(instr.operands().size());
  for (const Instr* operand : instr.operands()) {
    const auto [number, added] = numbers->try_emplace(operand, numbers->size());
    words->push_back(number->second);
    if (!added) continue;
    add_shape(operand->shape(), words);  // from outside
    const bool scalar = operand->is(Opcode::constant) && operand->shape().is_scalar();
    words->push_back(scalar ? hlo::hash(operand->attrs()) : 1);
  }
  for (const Computation* called : instr.called()) add_computation(*called, words);
  numbers->emplace(&instr, numbers->size());
}

void add_computation(const Computation& computation, std::vector<uint64_t>* words) {
  std::unordered_map<const Instr*, uint64_t> numbers;
  words->push_back(computation.instrs().size());
  for (const Instr* instr : computation.instrs()) add_instr(*instr, &numbers, words);
  words->push_back(numbers.at(computation.root()));
}

}  // namespace

Hash128 signature(const std::vector<Instr*>& instrs,
                  const std::function<bool(const Instr*)>& leaves) {
  std::vector<uint64_t> words;
  std::unordered_map<const Instr*, uint64_t> numbers;
  for (const Instr* instr : instrs) {
    add_instr(*instr, &numbers, &words);
    words.push_back(leaves(instr));
  }
  return hash128({reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)});
}

PatternJudge::PatternJudge(const SearchSpace& space, const target::Target& target, Pricing pricing)
    : space_(space), target_(target), pricing_(pricing), delta_(target) {}

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

// What is slower than its members one by one is no pattern: the delta evaluator could not know.
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

int64_t PatternJudge::alone_strided(Instr* instr) {
  const auto [known, added] = strided_.try_emplace(instr, 0);
  if (added) known->second = schedule::strided_elems(place_alone(instr, target_), target_);
  return known->second;
}

const Judged& PatternJudge::judge(const Members& members) {
  const auto [known, added] = by_members_.try_emplace(members, nullptr);
  if (!added) return *known->second;
  const std::vector<Instr*> instrs = space_.with_views(members);
  known->second = &judge(
      instrs,
      [&](const Instr* instr) { return !space_.is_view(instr) && space_.leaves(instr, members); },
      delta_.kernel_ns(work_of(members)));
  return *known->second;
}

const Judged& PatternJudge::judge(const Group& group) {
  std::vector<Instr*> instrs = group.members;
  std::sort(instrs.begin(), instrs.end(),
            [&](const Instr* a, const Instr* b) { return space_.index(a) < space_.index(b); });
  const std::unordered_set<const Instr*> inside(instrs.begin(), instrs.end());
  return judge(
      instrs,
      [&](const Instr* instr) {
        if (group.copies.count(instr)) return false;
        if (instr == space_.computation().root() || instrs.size() == 1) return true;
        return std::any_of(instr->users().begin(), instr->users().end(),
                           [&](const Instr* user) { return !inside.count(user); });
      },
      delta_.kernel_ns(work_of(space_.vertices_of(group, /*own=*/false))));
}

const Judged& PatternJudge::judge(const std::vector<Instr*>& instrs,
                                  const std::function<bool(const Instr*)>& leaves,
                                  double otherwise_ns) {
  const auto [known, added] = known_.try_emplace(signature(instrs, leaves));
  Judged& judged = known->second;
  if (!added) return judged;
  judged.ns = judged.delta_ns = otherwise_ns;
  if (std::any_of(instrs.begin(), instrs.end(),
                  [](const Instr* instr) { return schedule::is_copied_by_parts(*instr); }))
    return judged;
  ++placements_;
  std::unique_ptr<hlo::Module> candidate = extract(instrs, leaves);
  const schedule::PlacedFusion placed = schedule::place(*candidate->entry(), target_);
  if (!placed.decision) return judged;
  judged.strided = schedule::strided_elems(placed, target_);
  const cost::Latency latency = cost::latency(placed, target_);
  judged.ns = latency.ns;
  judged.builds = has_tasks(placed, latency, target_);
  // What would move across the lanes is turned by a kernel of its own.
  if (judged.strided > 0 && instrs.size() > 1) {
    int64_t apart = 0;
    for (Instr* instr : instrs) apart += alone_strided(instr);
    judged.builds &= judged.strided <= apart;
  }
  return judged;
}

}  // namespace heddle::fuse
