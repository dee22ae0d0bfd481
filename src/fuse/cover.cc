// The cover: which patterns become kernels (patterns.h).
#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "fuse/patterns.h"

namespace heddle::fuse {

namespace {

// Patterns taken so far, newest first; plans share their beginnings.
struct Taken {
  PatternId id;
  std::shared_ptr<const Taken> before;
};

struct Plan {
  double gain = 0;
  double hope = 0;  // what vertices ahead that are free may still gain
  std::shared_ptr<const Taken> taken;
  std::vector<PatternId> owner;  // by vertex, of those less than kSpan away; -1: free
};

class CoverSearch {
 public:
  CoverSearch(const SearchGraph& graph, const Patterns& patterns, const SearchOptions& options)
      : graph_(graph), patterns_(patterns), options_(options) {
    // A vertex's share in the best pattern that it is a member of.
    share_.assign(graph.vertices.size(), 0);
    for (size_t v = 0; v < graph.vertices.size(); ++v) {
      for (PatternId id : patterns.of(static_cast<int>(v))) {
        const Pattern& pattern = patterns.pattern(id);
        const double share = pattern.gain / static_cast<double>(pattern.members.size());
        for (int member : pattern.members) {
          double& best = share_[static_cast<size_t>(member)];
          best = std::max(best, share);
        }
      }
    }
  }

  std::vector<Cover> run() {
    ring_ = std::min<size_t>(graph_.vertices.size(), 2 * kSpan);
    std::vector<Plan> plans(1);
    plans[0].owner.assign(ring_, -1);
    for (double share : share_) plans[0].hope += share;
    for (int v = 0; v < static_cast<int>(graph_.vertices.size()); ++v) {
      if (patterns_.of(v).empty()) {
        for (Plan& plan : plans) pass(v, &plan);
        continue;
      }
      plans = step(v, std::move(plans));
    }
    std::vector<Cover> covers;
    for (const Plan& plan : plans) covers.push_back(cover_of(plan));
    return covers;
  }

 private:
  PatternId& owner(Plan* plan, int v) const { return plan->owner[static_cast<size_t>(v) % ring_]; }
  PatternId owner(const Plan& plan, int v) const {
    return plan.owner[static_cast<size_t>(v) % ring_];
  }

  // The vertex is behind: nothing more is hoped of it.
  void pass(int v, Plan* plan) const {
    if (owner(*plan, v) < 0) plan->hope -= share_[static_cast<size_t>(v)];
    // No pattern from here on spans so far back.
    if (v >= kSpan) owner(plan, v - kSpan) = -1;
  }

  std::vector<Plan> step(int v, std::vector<Plan> plans) {
    struct Move {
      size_t plan;
      PatternId id;  // -1: none
      double value;
    };
    std::vector<Move> moves;
    for (size_t p = 0; p < plans.size(); ++p) {
      const Plan& plan = plans[p];
      const bool is_free = owner(plan, v) < 0;
      const double hope = plan.hope - (is_free ? share_[static_cast<size_t>(v)] : 0);
      moves.push_back({p, -1, plan.gain + hope});
      if (!is_free) continue;
      for (PatternId id : patterns_.of(v)) {
        const Pattern& pattern = patterns_.pattern(id);
        if (overlaps(plan, pattern) || makes_cycle(plan, pattern)) continue;
        moves.push_back({p, id, plan.gain + pattern.gain + plan.hope - hope_of(pattern, v)});
      }
    }
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.value > b.value; });
    if (moves.size() > static_cast<size_t>(options_.beam))
      moves.resize(static_cast<size_t>(options_.beam));
    std::vector<size_t> uses(plans.size(), 0);
    for (const Move& move : moves) ++uses[move.plan];
    std::vector<Plan> next;
    for (const Move& move : moves) {
      Plan plan = --uses[move.plan] == 0 ? std::move(plans[move.plan]) : plans[move.plan];
      if (move.id >= 0) take(move.id, v, &plan);
      pass(v, &plan);
      next.push_back(std::move(plan));
    }
    return next;
  }

  double hope_of(const Pattern& pattern, int from) const {
    double hope = 0;
    for (int member : pattern.members)
      if (member >= from) hope += share_[static_cast<size_t>(member)];
    return hope;
  }

  void take(PatternId id, int v, Plan* plan) const {
    const Pattern& pattern = patterns_.pattern(id);
    plan->gain += pattern.gain;
    plan->hope -= hope_of(pattern, v);
    for (int member : pattern.members) owner(plan, member) = id;
    plan->taken = std::make_shared<Taken>(Taken{id, plan->taken});
  }

  bool overlaps(const Plan& plan, const Pattern& pattern) const {
    return std::any_of(pattern.members.begin(), pattern.members.end(),
                       [&](int member) { return owner(plan, member) >= 0; });
  }

  // Would a path lead out of the pattern and, through others that are contracted, back into it?
  // Each is convex by itself; together they need not be.
  bool makes_cycle(const Plan& plan, const Pattern& pattern) const {
    const Members& members = pattern.members;
    const int last = members.back();
    auto is_member = [&](int vertex) {
      return std::binary_search(members.begin(), members.end(), vertex);
    };
    std::vector<int> work;
    std::unordered_set<int> seen;
    // True: it led back.
    auto follow = [&](int vertex) {
      for (int consumer : graph_.vertices[static_cast<size_t>(vertex)].consumers) {
        if (is_member(consumer)) return true;
        // Behind the pattern only what is contracted with something before its end leads back.
        const bool matters =
            consumer < last || (consumer - last < kSpan && owner(plan, consumer) >= 0);
        if (matters && seen.insert(consumer).second) work.push_back(consumer);
      }
      return false;
    };
    for (int member : members)
      for (int consumer : graph_.vertices[static_cast<size_t>(member)].consumers)
        if (!is_member(consumer) && consumer - last < kSpan && seen.insert(consumer).second)
          work.push_back(consumer);
    while (!work.empty()) {
      const int vertex = work.back();
      work.pop_back();
      const PatternId id = vertex - last < kSpan ? owner(plan, vertex) : -1;
      if (id < 0) {
        if (follow(vertex)) return true;
        continue;
      }
      for (int other : patterns_.pattern(id).members) {
        if (!seen.insert(other).second && other != vertex) continue;
        if (follow(other)) return true;
      }
    }
    return false;
  }

  Cover cover_of(const Plan& plan) const {
    Cover cover;
    cover.gain = plan.gain;
    for (const Taken* taken = plan.taken.get(); taken; taken = taken->before.get())
      cover.patterns.push_back(taken->id);
    std::reverse(cover.patterns.begin(), cover.patterns.end());
    return cover;
  }

  const SearchGraph& graph_;
  const Patterns& patterns_;
  const SearchOptions& options_;
  std::vector<double> share_;
  size_t ring_ = 1;
};

// Unites neighbours, the best pair first, until none gains.
class Merger {
 public:
  Merger(const SearchGraph& graph, Patterns* patterns, const Cover& cover, bool remote)
      : graph_(graph), patterns_(*patterns), remote_(remote) {
    node_.assign(graph.vertices.size(), -1);
    for (PatternId id : cover.patterns) add(patterns_.pattern(id).members, id);
    for (int v = 0; v < static_cast<int>(graph.vertices.size()); ++v)
      if (node_[static_cast<size_t>(v)] < 0) add({v}, -1);
    sort();
  }

  Cover run() {
    for (size_t node = 0; node < nodes_.size(); ++node) push_pairs(node, neighbours(node, kBoth));
    unite_all();
    // The virtual producer's turn.
    for (size_t place = 0; remote_ && place < order_.size(); ++place)
      if (order_[place] != kNone) push_remote(order_[place]);
    unite_all();
    Cover cover;
    for (const Node& node : nodes_) {
      if (!node.alive || node.pattern < 0) continue;
      cover.patterns.push_back(node.pattern);
      cover.gain += patterns_.pattern(node.pattern).gain;
    }
    std::sort(cover.patterns.begin(), cover.patterns.end(), [&](PatternId a, PatternId b) {
      return patterns_.pattern(a).members.front() < patterns_.pattern(b).members.front();
    });
    return cover;
  }

 private:
  struct Node {
    Members members;
    PatternId pattern = -1;  // -1: a vertex by itself
    bool alive = true;
    size_t place = 0;  // in order_
  };
  struct Pair {
    double gain = 0;
    size_t a = 0, b = 0;
    PatternId to = -1;
    bool operator<(const Pair& other) const {
      return gain != other.gain ? gain < other.gain : b > other.b;
    }
  };

  size_t add(Members members, PatternId pattern) {
    for (int member : members) node_[static_cast<size_t>(member)] = static_cast<int>(nodes_.size());
    nodes_.push_back({std::move(members), pattern, true, 0});
    return nodes_.size() - 1;
  }

  enum Way { kProducers = 1, kConsumers = 2, kBoth = 3 };

  std::vector<size_t> neighbours(size_t node, Way way) const {
    std::vector<size_t> found;
    auto see = [&](int vertex) {
      const auto other = static_cast<size_t>(node_[static_cast<size_t>(vertex)]);
      if (other != node) found.push_back(other);
    };
    for (int member : nodes_[node].members) {
      const Vertex& vertex = graph_.vertices[static_cast<size_t>(member)];
      if (way & kConsumers)
        for (int consumer : vertex.consumers) see(consumer);
      if (way & kProducers)
        for (int producer : vertex.producers) see(producer);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  bool can_fuse(size_t node) const {
    const Node& one = nodes_[node];
    return one.pattern >= 0 || graph_.vertices[static_cast<size_t>(one.members[0])].can_fuse;
  }

  double gain_of(size_t node) const {
    return nodes_[node].pattern < 0 ? 0 : patterns_.pattern(nodes_[node].pattern).gain;
  }

  void unite_all() {
    while (!queue_.empty()) {
      const Pair pair = queue_.top();
      queue_.pop();
      if (nodes_[pair.a].alive && nodes_[pair.b].alive && patterns_.builds(pair.to) &&
          patterns_.pays(patterns_.pattern(pair.to).members, nodes_[pair.a].members,
                         nodes_[pair.b].members))
        unite(pair.a, pair.b, pair.to);
    }
  }

  // Pairs with those that come shortly before it: of the same class, and of any.
  void push_remote(size_t node) {
    constexpr size_t kMostPartners = 4, kFarthest = 256;
    if (!can_fuse(node)) return;
    const uint64_t key = patterns_.packing_class(nodes_[node].members);
    if (key == 0) return;
    for (const uint64_t from : {key, kAnyClass}) {
      std::vector<size_t>& known = of_class_[from];
      std::erase_if(known, [&](size_t other) {
        return !nodes_[other].alive || nodes_[node].place > nodes_[other].place + kFarthest;
      });
      const size_t first = known.size() < kMostPartners ? 0 : known.size() - kMostPartners;
      push_pairs(node, {known.begin() + static_cast<long>(first), known.end()});
      known.push_back(node);
    }
  }

  void push_pairs(size_t node, const std::vector<size_t>& others) {
    if (!can_fuse(node)) return;
    for (size_t other : others) {
      if (!can_fuse(other)) continue;
      Members members;
      std::set_union(nodes_[node].members.begin(), nodes_[node].members.end(),
                     nodes_[other].members.begin(), nodes_[other].members.end(),
                     std::back_inserter(members));
      const std::optional<PatternId> to = patterns_.propose(std::move(members));
      if (!to) continue;
      const double gain = patterns_.pattern(*to).gain - gain_of(node) - gain_of(other);
      if (gain > 0) queue_.push({gain, node, other, *to});
    }
  }

  // A topological order of the nodes, by the vertices' numbers where it leaves a choice.
  void sort() {
    std::vector<int> waits(nodes_.size(), 0);
    for (size_t node = 0; node < nodes_.size(); ++node)
      for (size_t next : neighbours(node, kConsumers)) ++waits[next];
    using Ready = std::pair<int, size_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    for (size_t node = 0; node < nodes_.size(); ++node)
      if (waits[node] == 0) ready.push({nodes_[node].members.front(), node});
    while (!ready.empty()) {
      const size_t node = ready.top().second;
      ready.pop();
      nodes_[node].place = order_.size();
      order_.push_back(node);
      for (size_t next : neighbours(node, kConsumers))
        if (--waits[next] == 0) ready.push({nodes_[next].members.front(), next});
    }
    HEDDLE_CHECK(order_.size() == nodes_.size(), "the cover has a cycle");
  }

  // Nodes that `from` leads to, or that lead to it, strictly between two places; false: one of them
  // is next to `to`.
  bool reach(size_t from, size_t to, Way way, size_t low, size_t high,
             std::vector<size_t>* found) const {
    std::unordered_set<size_t> seen;
    found->assign(1, from);
    for (size_t i = 0; i < found->size(); ++i) {
      const size_t node = (*found)[i];
      for (size_t next : neighbours(node, way)) {
        if (next == to && node != from) return false;
        const size_t place = nodes_[next].place;
        if (place > low && place < high && seen.insert(next).second) found->push_back(next);
      }
    }
    found->erase(found->begin());
    std::sort(found->begin(), found->end(),
              [&](size_t a, size_t b) { return nodes_[a].place < nodes_[b].place; });
    return true;
  }

  // Unless a path leads from one to the other through a third. Only what stands between them in
  // the order can lie on one; the order is repaired there, and only what depends on either moves:
  // what leads to the second before the two, what the first leads to behind them.
  void unite(size_t a, size_t b, PatternId to) {
    if (nodes_[a].place > nodes_[b].place) std::swap(a, b);
    const size_t low = nodes_[a].place, high = nodes_[b].place;
    std::vector<size_t> before, after;
    if (!reach(a, b, kConsumers, low, high, &after)) return;
    reach(b, a, kProducers, low, high, &before);
    std::vector<size_t> places{low, high};
    for (size_t node : before) places.push_back(nodes_[node].place);
    for (size_t node : after) places.push_back(nodes_[node].place);
    std::sort(places.begin(), places.end());
    nodes_[a].alive = nodes_[b].alive = false;
    const size_t united = add(patterns_.pattern(to).members, to);
    std::vector<size_t> row = std::move(before);
    row.push_back(united);
    row.push_back(kNone);
    row.insert(row.end(), after.begin(), after.end());
    for (size_t i = 0; i < row.size(); ++i) {
      order_[places[i]] = row[i];
      if (row[i] != kNone) nodes_[row[i]].place = places[i];
    }
    push_pairs(united, neighbours(united, kBoth));
    if (!of_class_.empty()) push_remote(united);
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);
  static constexpr uint64_t kAnyClass = 0;

  const SearchGraph& graph_;
  Patterns& patterns_;
  const bool remote_;
  std::vector<Node> nodes_;
  std::vector<int> node_;      // by vertex
  std::vector<size_t> order_;  // nodes, producers first; kNone: a gap
  std::priority_queue<Pair> queue_;
  std::unordered_map<uint64_t, std::vector<size_t>> of_class_;  // once packing has begun
};

}  // namespace

std::vector<Cover> search_covers(const SearchGraph& graph, Patterns* patterns,
                                 const SearchOptions& options) {
  std::vector<Cover> covers = CoverSearch(graph, *patterns, options).run();
  for (Cover& cover : covers) cover = Merger(graph, patterns, cover, options.remote).run();
  std::stable_sort(covers.begin(), covers.end(),
                   [](const Cover& a, const Cover& b) { return a.gain > b.gain; });
  return covers;
}

bool is_acyclic(const SearchGraph& graph, const std::vector<Members>& contracted) {
  const size_t count = graph.vertices.size();
  std::vector<size_t> node(count);
  for (size_t v = 0; v < count; ++v) node[v] = v;
  for (const Members& members : contracted)
    for (int member : members) node[static_cast<size_t>(member)] = static_cast<size_t>(members[0]);
  std::vector<std::vector<size_t>> next(count);
  std::vector<int> waits(count, 0);
  for (size_t v = 0; v < count; ++v) {
    for (int consumer : graph.vertices[v].consumers) {
      const size_t to = node[static_cast<size_t>(consumer)];
      if (to == node[v]) continue;
      next[node[v]].push_back(to);
      ++waits[to];
    }
  }
  std::vector<size_t> ready;
  size_t nodes = 0, done = 0;
  for (size_t v = 0; v < count; ++v) {
    if (node[v] != v) continue;
    ++nodes;
    if (waits[v] == 0) ready.push_back(v);
  }
  while (!ready.empty()) {
    const size_t v = ready.back();
    ready.pop_back();
    ++done;
    for (size_t to : next[v])
      if (--waits[to] == 0) ready.push_back(to);
  }
  return done == nodes;
}

}  // namespace heddle::fuse
