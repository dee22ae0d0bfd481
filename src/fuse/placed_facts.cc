#include "fuse/placed_facts.h"

#include <algorithm>
#include <cctype>

#include "cost/cache_sets.h"
#include "cost/few_tasks.h"
#include "cost/latency.h"
#include "cost/rates.h"
#include "cost/strides.h"
#include "cost/traffic.h"
#include "schedule/gemm.h"
#include "schedule/place.h"
#include "schedule/windows.h"

namespace heddle::fuse {

void add_shape(const tensor::Shape& shape, std::vector<uint64_t>* words) {
  words->push_back(static_cast<uint64_t>(shape.type()));
  for (const tensor::Shape& element : shape.elements()) add_shape(element, words);
  words->push_back(shape.dims().size());
  for (int64_t extent : shape.is_array() ? shape.extents() : std::vector<int64_t>())
    words->push_back(static_cast<uint64_t>(extent));
}

namespace {

void add_computation(const Computation& computation, std::vector<uint64_t>* words);

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

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

// The decision with the names of `from` replaced by the names of `to` at the same positions; whole
// names only.
Decision renamed(const Decision& decision, const std::vector<Instr*>& from,
                 const std::vector<Instr*>& to) {
  std::unordered_map<std::string_view, std::string_view> names;
  for (size_t i = 0; i < from.size(); ++i) names.emplace(from[i]->name(), to[i]->name());
  const std::string_view reason = decision.reason();
  std::string text;
  for (size_t at = 0; at < reason.size();) {
    size_t end = at;
    while (end < reason.size() && is_name_char(reason[end])) ++end;
    if (end == at) ++end;
    const std::string_view word = reason.substr(at, end - at);
    const auto found = names.find(word);
    text += found == names.end() ? word : found->second;
    at = end;
  }
  return Decision::no(decision.code().c_str(), "{}", text);
}

// Whether several stages that share the tasks of one leave enough of them: a reduction that many
// cores could share must stay separate.
bool has_tasks(const Facts& facts, const cost::Latency& latency, const target::Target& target) {
  if (facts.stages < 2 || latency.phases.empty()) return true;
  const auto longest =
      std::max_element(latency.phases.begin(), latency.phases.end(),
                       [](const cost::PhaseLatency& a, const cost::PhaseLatency& b) {
                         return a.compute_ns < b.compute_ns;
                       });
  return !facts.reduces || facts.elems <= cost::kFewElems ||
         longest->tasks >= 2 * cost::core_count(target);
}

Facts facts_of(const stage::PlacedFusion& placed, const target::Target& target) {
  Facts facts;
  facts.decision = placed.decision;
  if (!placed.decision) return facts;
  facts.is_gemm = stage::is_gemm(placed);
  facts.is_chain = stage::is_chain(placed);
  facts.is_template = stage::is_template(placed);
  facts.windows = schedule::count_windows(placed);
  facts.strided = cost::strided_elems(placed);
  facts.shared_sets_ns = cost::shared_sets_ns(placed, target);
  if (stage::is_gemm(placed))
    facts.word = std::get<stage::Row>(placed.schedule.nodes[0]).gemm()->record.word();
  if (facts.is_template) facts.uses_across = schedule::uses_across(placed.graph, facts.word);
  const auto& stages = placed.graph.stages;
  facts.stages = stages.size();
  facts.is_packing = true;
  for (const stage::Stage& stage : stages) {
    facts.reduces |= stage.is_reduction();
    facts.is_packing &= !stage.is_reduction() && stage.out == stages[0].out;
    facts.elems = std::max(facts.elems, stage.out_elems() * stage.red_elems());
  }
  for (const stage::ScheduleNode& node : placed.schedule.nodes)
    if (const auto* loop = std::get_if<stage::Loop>(&node)) facts.tasks *= loop->trips;
  if (facts.is_template) return facts;
  const cost::Latency latency = cost::latency(placed, target);
  facts.ns = latency.ns;
  facts.has_tasks = has_tasks(facts, latency, target);
  return facts;
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

Facts PlacedFacts::of(const std::vector<Instr*>& members,
                      const std::function<bool(const Instr*)>& leaves) {
  const auto [found, added] = known_.try_emplace(signature(members, leaves));
  Known& known = found->second;
  if (added) {
    const stage::PlacedFusion placed = schedule::place(members_of(members, leaves), target_);
    known.facts = facts_of(placed, target_);
    if (!placed.decision)
      known.members = members;
    else if (with_traffic_)
      known.facts.traffic_ns = cost::traffic_ns(placed, target_);
  }
  Facts facts = known.facts;
  if (!facts.decision) facts.decision = renamed(facts.decision, known.members, members);
  return facts;
}

Facts PlacedFacts::of_alone(Instr* instr) {
  return of({instr}, [](const Instr*) { return true; });
}

}  // namespace heddle::fuse
