// Side device is the source, side host the sink. A value has two vertices: edges producer -> first
// -> readers charge its cost once for a crossing to the host, edges readers -> second -> producer
// for one to the device. Capacities are lexicographically ordered pairs; maximum flow works with
// them unchanged.
#include "plan/cut.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::plan {
namespace {

using program::Space;

constexpr CutCost kNothing{};
constexpr CutCost kAnything{int64_t{1} << 60, 0};

class Flows {
 public:
  explicit Flows(size_t vertices) : edges_of_(vertices), level_(vertices), next_(vertices) {}

  void add(size_t from, size_t to, CutCost capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, kNothing});
  }

  void saturate(size_t source, size_t sink) {
    while (find_levels(source, sink)) {
      std::fill(next_.begin(), next_.end(), 0);
      while (push(source, sink, kAnything) > kNothing) {
      }
    }
  }

  // Vertices from which residual capacity leads to `sink`.
  std::vector<bool> reaching(size_t sink) const {
    std::vector<bool> seen(edges_of_.size());
    std::vector<size_t> stack{sink};
    seen[sink] = true;
    while (!stack.empty()) {
      const size_t at = stack.back();
      stack.pop_back();
      for (size_t e : edges_of_[at]) {
        const size_t from = edges_[e].to;  // the reverse edge is e ^ 1
        if (seen[from] || !(edges_[e ^ 1].left > kNothing)) continue;
        seen[from] = true;
        stack.push_back(from);
      }
    }
    return seen;
  }

 private:
  struct Edge {
    size_t to;
    CutCost left;
  };

  bool find_levels(size_t source, size_t sink) {
    std::fill(level_.begin(), level_.end(), -1);
    std::vector<size_t> queue{source};
    level_[source] = 0;
    for (size_t q = 0; q < queue.size(); ++q)
      for (size_t e : edges_of_[queue[q]]) {
        const size_t to = edges_[e].to;
        if (level_[to] >= 0 || !(edges_[e].left > kNothing)) continue;
        level_[to] = level_[queue[q]] + 1;
        queue.push_back(to);
      }
    return level_[sink] >= 0;
  }

  // Finds one augmenting path along the levels; without recursion, since programs are deep.
  CutCost push(size_t source, size_t sink, CutCost most) {
    std::vector<size_t> way;
    size_t at = source;
    while (at != sink) {
      size_t& next = next_[at];
      while (next < edges_of_[at].size()) {
        const Edge& edge = edges_[edges_of_[at][next]];
        if (edge.left > kNothing && level_[edge.to] == level_[at] + 1) break;
        ++next;
      }
      if (next < edges_of_[at].size()) {
        way.push_back(edges_of_[at][next]);
        at = edges_[way.back()].to;
        continue;
      }
      if (way.empty()) return kNothing;
      at = edges_[way.back() ^ 1].to;
      way.pop_back();
      ++next_[at];
    }
    for (size_t e : way) most = std::min(most, edges_[e].left);
    for (size_t e : way) {
      edges_[e].left.price -= most.price;
      edges_[e].left.bytes -= most.bytes;
      edges_[e ^ 1].left += most;
    }
    return most;
  }

  std::vector<Edge> edges_;  // each followed by its reverse edge
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace

CutCost cost_of(const CutProblem& problem, const std::vector<Space>& sides) {
  CutCost cost;
  for (const CutProblem::Value& value : problem.values)
    if (std::any_of(value.readers.begin(), value.readers.end(), [&](int reader) {
          return sides[static_cast<size_t>(reader)] != sides[static_cast<size_t>(value.producer)];
        }))
      cost += value.cost;
  return cost;
}

std::vector<Space> best_sides(const CutProblem& problem) {
  const size_t units = problem.units.size(), source = units, sink = units + 1;
  Flows flows(units + 2 + 2 * problem.values.size());
  for (size_t u = 0; u < units; ++u) {
    if (problem.units[u] == CutProblem::Unit::device) flows.add(source, u, kAnything);
    if (problem.units[u] == CutProblem::Unit::host) flows.add(u, sink, kAnything);
  }
  size_t vertex = units + 2;
  for (const CutProblem::Value& value : problem.values) {
    const size_t out = vertex++, back = vertex++;
    const auto producer = static_cast<size_t>(value.producer);
    flows.add(producer, out, value.cost);
    flows.add(back, producer, value.cost);
    for (int reader : value.readers) {
      flows.add(out, static_cast<size_t>(reader), kAnything);
      flows.add(static_cast<size_t>(reader), back, kAnything);
    }
  }
  flows.saturate(source, sink);
  const std::vector<bool> host = flows.reaching(sink);
  std::vector<Space> sides;
  for (size_t u = 0; u < units; ++u) sides.push_back(host[u] ? Space::host : Space::device);
  return sides;
}

}  // namespace heddle::plan
