#include "precision/min_cut.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace heddle::precision {

MinCut::MinCut(int nodes)
    : source_(nodes), sink_(nodes + 1), arcs_(static_cast<size_t>(nodes) + 2) {}

void MinCut::add(int from, int to, int64_t cost) {
  HEDDLE_CHECK(cost >= 0, "a cost of {}", cost);
  if (cost == 0) return;
  auto& mine = arcs_[static_cast<size_t>(from)];
  auto& other = arcs_[static_cast<size_t>(to)];
  mine.push_back({to, cost, other.size()});
  other.push_back({from, 0, mine.size() - 1});
}

void MinCut::pay_if(int node, int64_t cost) { add(node, sink_, cost); }
void MinCut::pay_unless(int node, int64_t cost) { add(source_, node, cost); }
void MinCut::pay_between(int a, int b, int64_t cost) { add(a, b, cost); }

bool MinCut::find_levels() {
  level_.assign(arcs_.size(), -1);
  level_[static_cast<size_t>(source_)] = 0;
  std::vector<int> queue{source_};
  for (size_t i = 0; i < queue.size(); ++i)
    for (const Arc& arc : arcs_[static_cast<size_t>(queue[i])])
      if (arc.left > 0 && level_[static_cast<size_t>(arc.to)] < 0) {
        level_[static_cast<size_t>(arc.to)] = level_[static_cast<size_t>(queue[i])] + 1;
        queue.push_back(arc.to);
      }
  return level_[static_cast<size_t>(sink_)] >= 0;
}

// One augmenting path from `node` to the sink along rising levels; not recursive, as paths may be
// long.
int64_t MinCut::push(int node, int64_t most) {
  std::vector<std::pair<int, size_t>> path;  // node, its arc
  int at = node;
  while (at != sink_) {
    auto& arcs = arcs_[static_cast<size_t>(at)];
    size_t& next = next_[static_cast<size_t>(at)];
    const auto rises = [&](const Arc& arc) {
      return arc.left > 0 &&
             level_[static_cast<size_t>(arc.to)] == level_[static_cast<size_t>(at)] + 1;
    };
    while (next < arcs.size() && !rises(arcs[next])) ++next;
    if (next < arcs.size()) {
      path.emplace_back(at, next);
      at = arcs[next].to;
      continue;
    }
    if (path.empty()) return 0;
    at = path.back().first;
    path.pop_back();
    ++next_[static_cast<size_t>(at)];
  }
  for (const auto& [from, arc] : path)
    most = std::min(most, arcs_[static_cast<size_t>(from)][arc].left);
  for (const auto& [from, number] : path) {
    Arc& arc = arcs_[static_cast<size_t>(from)][number];
    arc.left -= most;
    arcs_[static_cast<size_t>(arc.to)][arc.back].left += most;
  }
  return most;
}

std::vector<bool> MinCut::solve() {
  while (find_levels()) {
    next_.assign(arcs_.size(), 0);
    while (push(source_, std::numeric_limits<int64_t>::max()) > 0) {
    }
  }
  // Nodes that the source still reaches: the smallest minimum cut.
  std::vector<bool> chosen(static_cast<size_t>(source_));
  for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = level_[i] >= 0;
  return chosen;
}

}  // namespace heddle::precision
