#include "fuse/patterns.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::fuse {

Patterns::Patterns(const Graph& graph, Evaluator* evaluator, const SearchOptions& options)
    : graph_(graph), evaluator_(evaluator), options_(options), reach_(graph) {
  of_vertex_.resize(graph.vertices.size());
  for (size_t v = graph.vertices.size(); v-- > 0;) {
    const Vertex& vertex = graph.vertices[v];
    if (!vertex.can_fuse) continue;
    std::vector<int> consumers;
    for (int consumer : vertex.consumers)
      if (graph.vertices[static_cast<size_t>(consumer)].can_fuse &&
          consumer - static_cast<int>(v) < kSpan)
        consumers.push_back(consumer);
    if (consumers.empty()) continue;
    of_vertex_[v] =
        reduce(static_cast<int>(v), consumers.data(), consumers.data() + consumers.size());
  }
}

// The published reduction: the patterns of up to two consumers are united in every way; of more,
// the best ones of each half are.
std::vector<PatternId> Patterns::reduce(int vertex, const int* begin, const int* end) {
  std::vector<PatternId> pool;
  auto add = [&](std::optional<PatternId> id) {
    if (!id) return;
    pool.push_back(*id);
    if (std::optional<PatternId> wider = with_only_producers(*id)) pool.push_back(*wider);
  };
  std::vector<PatternId> left, right;
  if (end - begin <= 2) {
    left = candidates(begin[0]);
    if (end - begin == 2) right = candidates(begin[1]);
  } else {
    const int* middle = begin + (end - begin + 1) / 2;
    left = reduce(vertex, begin, middle);
    right = reduce(vertex, middle, end);
  }
  constexpr PatternId kNone = -1;
  left.push_back(kNone);
  right.push_back(kNone);
  for (PatternId a : left)
    for (PatternId b : right)
      if (a != kNone || b != kNone) add(unite(vertex, a, b));
  return best_of(std::move(pool));
}

// A consumer's candidates: its patterns, and itself alone.
std::vector<PatternId> Patterns::candidates(int consumer) {
  std::vector<PatternId> found = of(consumer);
  found.push_back(intern({consumer}));
  return found;
}

std::vector<PatternId> Patterns::best_of(std::vector<PatternId> pool) {
  std::sort(pool.begin(), pool.end());
  pool.erase(std::unique(pool.begin(), pool.end()), pool.end());
  std::stable_sort(pool.begin(), pool.end(),
                   [&](PatternId a, PatternId b) { return pattern(a).gain > pattern(b).gain; });
  std::vector<PatternId> best;
  for (PatternId id : pool) {
    if (static_cast<int>(best.size()) == options_.top || pattern(id).gain <= 0) break;
    if (builds(id)) best.push_back(id);
  }
  return best;
}

bool Patterns::builds(PatternId id) {
  std::optional<bool>& known = builds_known_[static_cast<size_t>(id)];
  if (!known) {
    ++builds_;
    known = evaluator_->can_build(pattern(id).members);
  }
  return *known;
}

std::optional<PatternId> Patterns::consider_any(Members members) {
  ++unions_;
  if (!is_convex(members)) return std::nullopt;
  const PatternId id = intern(std::move(members));
  if (pattern(id).gain <= 0 || !builds(id)) return std::nullopt;
  return id;
}

std::optional<PatternId> Patterns::propose(Members members) {
  ++unions_;
  if (static_cast<int>(members.size()) > options_.most_members || !is_convex(members))
    return std::nullopt;
  const PatternId id = intern(std::move(members));
  if (pattern(id).gain <= 0) return std::nullopt;
  return id;
}

std::optional<PatternId> Patterns::unite(int vertex, PatternId a, PatternId b) {
  ++unions_;
  Members members{vertex}, both;
  for (PatternId id : {a, b}) {
    if (id < 0) continue;
    const Members& more = pattern(id).members;
    both.clear();
    std::set_union(members.begin(), members.end(), more.begin(), more.end(),
                   std::back_inserter(both));
    members.swap(both);
  }
  if (static_cast<int>(members.size()) > options_.most_members || !is_convex(members))
    return std::nullopt;
  return intern(std::move(members));
}

// Adds producers that only the pattern reads: their values need not be stored. (The published
// search reaches them only from a common producer.)
std::optional<PatternId> Patterns::with_only_producers(PatternId id) {
  Members members = pattern(id).members;
  const size_t before = members.size();
  for (size_t i = 0; i < members.size(); ++i) {
    for (int producer : graph_.vertices[static_cast<size_t>(members[i])].producers) {
      const Vertex& vertex = graph_.vertices[static_cast<size_t>(producer)];
      if (!vertex.can_fuse || members.back() - producer >= kSpan ||
          std::binary_search(members.begin(), members.end(), producer))
        continue;
      const bool only_here =
          std::all_of(vertex.consumers.begin(), vertex.consumers.end(), [&](int consumer) {
            return std::binary_search(members.begin(), members.end(), consumer);
          });
      if (!only_here) continue;
      members.insert(std::lower_bound(members.begin(), members.end(), producer), producer);
      i = static_cast<size_t>(-1);  // their producers too
      break;
    }
    if (static_cast<int>(members.size()) > options_.most_members) return std::nullopt;
  }
  if (members.size() == before || !is_convex(members)) return std::nullopt;
  return intern(std::move(members));
}

std::optional<PatternId> Patterns::offer(Members members) {
  const std::optional<PatternId> id = consider_any(std::move(members));
  if (!id) return id;
  std::vector<PatternId>& known = of_vertex_[static_cast<size_t>(pattern(*id).members.front())];
  if (std::find(known.begin(), known.end(), *id) != known.end()) return id;
  known.insert(
      std::upper_bound(known.begin(), known.end(), *id,
                       [&](PatternId a, PatternId b) { return pattern(a).gain > pattern(b).gain; }),
      *id);
  return id;
}

PatternId Patterns::intern(Members members) {
  const auto [place, added] = known_.try_emplace(std::move(members), static_cast<int>(size()));
  if (added) {
    const double gain = place->first.size() > 1 ? evaluator_->gain(place->first) : 0;
    patterns_.push_back({place->first, gain});
    builds_known_.emplace_back();
  }
  return place->second;
}

bool Patterns::is_convex(const Members& members) const {
  if (members.back() - members.front() >= kSpan) return false;
  Band below, above;
  for (int member : members) {
    below.unite(reach_.descendants(member), members.front(), members.back());
    above.unite(reach_.ancestors(member), members.front(), members.back());
  }
  return Band::common(below, above, members) < 0;
}

}  // namespace heddle::fuse
