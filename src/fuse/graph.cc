#include "fuse/graph.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_set>

#include "base/check.h"

namespace heddle::fuse {

namespace {

void add_once(std::vector<int>* list, int vertex) {
  if (std::find(list->begin(), list->end(), vertex) == list->end()) list->push_back(vertex);
}

}  // namespace

int Graph::add(std::vector<int> producers, bool can_fuse) {
  const int number = static_cast<int>(vertices.size());
  std::sort(producers.begin(), producers.end());
  producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
  for (int producer : producers) {
    HEDDLE_CHECK(producer >= 0 && producer < number, "vertex {} reads {}", number, producer);
    vertices[static_cast<size_t>(producer)].consumers.push_back(number);
  }
  vertices.push_back({std::move(producers), {}, can_fuse});
  return number;
}

// The producers of a vertex are few; its consumers may be many.
void Graph::add_edge(int before, int after) {
  std::vector<int>& producers = vertices[static_cast<size_t>(after)].producers;
  const size_t known = producers.size();
  add_once(&producers, before);
  if (producers.size() > known) vertices[static_cast<size_t>(before)].consumers.push_back(after);
}

void Graph::remove_edge(int before, int after) {
  if (std::erase(vertices[static_cast<size_t>(after)].producers, before) > 0)
    std::erase(vertices[static_cast<size_t>(before)].consumers, after);
}

InstrGraph::InstrGraph(const hlo::Computation& computation) {
  const auto effects = effects_before(computation);
  for (const hlo::Instr* instr : computation.instrs()) {
    std::vector<int> producers;
    for (const auto* list : {&instr->operands(), &instr->control_predecessors()})
      for (const hlo::Instr* before : *list) producers.push_back(vertex_.at(before));
    if (const auto effect = effects.find(instr); effect != effects.end())
      producers.push_back(vertex_.at(effect->second));
    vertex_.emplace(instr, graph.add(std::move(producers)));
  }
}

std::unordered_map<const hlo::Instr*, hlo::Instr*> effects_before(
    const hlo::Computation& computation) {
  std::unordered_map<const hlo::Instr*, hlo::Instr*> before;
  hlo::Instr* last = nullptr;
  for (hlo::Instr* instr : computation.instrs()) {
    if (!hlo::has_effect(*instr)) continue;
    if (last) before.emplace(instr, last);
    last = instr;
  }
  return before;
}

std::vector<std::vector<int>> waits_of(const hlo::Computation& computation,
                                       const std::vector<std::vector<hlo::Instr*>>& kernels,
                                       const std::function<int(const hlo::Instr*)>& kernel_of) {
  const auto effects = effects_before(computation);
  std::vector<std::vector<int>> waits(kernels.size());
  for (size_t n = 0; n < kernels.size(); ++n) {
    std::vector<const hlo::Instr*> made(kernels[n].begin(), kernels[n].end());
    std::unordered_set<const hlo::Instr*> seen(made.begin(), made.end());
    auto wait_for = [&](const hlo::Instr* before) {
      if (!seen.insert(before).second) return;
      if (const int kernel = kernel_of(before); kernel >= 0)
        waits[n].push_back(kernel);
      else
        made.push_back(before);
    };
    for (size_t i = 0; i < made.size(); ++i) {
      const hlo::Instr* instr = made[i];
      for (const auto* list : {&instr->operands(), &instr->control_predecessors()})
        for (const hlo::Instr* before : *list) wait_for(before);
      if (const auto effect = effects.find(instr); effect != effects.end())
        wait_for(effect->second);
    }
    std::sort(waits[n].begin(), waits[n].end());
    waits[n].erase(std::unique(waits[n].begin(), waits[n].end()), waits[n].end());
    std::erase(waits[n], static_cast<int>(n));
  }
  return waits;
}

std::vector<int> in_order(const std::vector<std::vector<int>>& before,
                          const std::vector<size_t>& key) {
  std::vector<std::vector<int>> behind(before.size());
  std::vector<size_t> waits(before.size());
  using Ready = std::pair<size_t, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t n = 0; n < before.size(); ++n) {
    waits[n] = before[n].size();
    for (int other : before[n]) behind[static_cast<size_t>(other)].push_back(static_cast<int>(n));
    if (waits[n] == 0) ready.emplace(key[n], static_cast<int>(n));
  }
  std::vector<int> order;
  order.reserve(before.size());
  while (!ready.empty()) {
    const int at = ready.top().second;
    ready.pop();
    order.push_back(at);
    for (int next : behind[static_cast<size_t>(at)])
      if (--waits[static_cast<size_t>(next)] == 0)
        ready.emplace(key[static_cast<size_t>(next)], next);
  }
  return order;
}

}  // namespace heddle::fuse
