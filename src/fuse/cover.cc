// The cover: which patterns become kernels (patterns.h).
#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>

#include "fuse/kernel_order.h"
#include "fuse/patterns.h"

namespace heddle::fuse {

namespace {

// Patterns taken so far, newest first; plans share prefixes.
struct Taken {
  PatternId id;
  std::shared_ptr<const Taken> before;
};

// A taken pattern with vertices that are still ahead.
struct Open {
  PatternId id;
  int last;                           // vertex
  std::shared_ptr<const Band> below;  // vertices that it leads to, also through others
};

struct Plan {
  double gain = 0;
  double hope = 0;  // the gain that free vertices ahead may still bring
  std::shared_ptr<const Taken> taken;
  std::vector<Open> open;
  std::vector<PatternId> owner;  // by vertex, for vertices less than kSpan away; -1: free
};

class CoverSearch {
 public:
  CoverSearch(const Graph& graph, const Patterns& patterns, const SearchOptions& options)
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

  // Moves past a vertex, from which no more gain is hoped for.
  void pass(int v, Plan* plan) const {
    if (owner(*plan, v) < 0) plan->hope -= share_[static_cast<size_t>(v)];
    std::erase_if(plan->open, [&](const Open& open) { return open.last <= v; });
    // No later pattern reaches back that far.
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
    auto band = std::make_shared<Band>(below(pattern.members));
    for (const Open& open : plan->open)
      if (leads_to(*band, patterns_.pattern(open.id).members)) band->unite(*open.below);
    for (Open& open : plan->open) {
      if (!leads_to(*open.below, pattern.members)) continue;
      Band more = *open.below;
      more.unite(*band);
      open.below = std::make_shared<const Band>(std::move(more));
    }
    plan->open.push_back({id, pattern.members.back(), std::move(band)});
    plan->taken = std::make_shared<Taken>(Taken{id, plan->taken});
  }

  bool overlaps(const Plan& plan, const Pattern& pattern) const {
    return std::any_of(pattern.members.begin(), pattern.members.end(),
                       [&](int member) { return owner(plan, member) >= 0; });
  }

  // The vertices that the members lead to while no other pattern is contracted.
  Band below(const Members& members) const {
    Band band;
    for (int member : members) band.unite(patterns_.reach().descendants(member));
    return band;
  }

  static bool leads_to(const Band& from, const Members& members) {
    return std::any_of(members.begin(), members.end(), [&](int v) { return from.has(v); });
  }

  // Whether a path would lead out of the pattern and, through other taken ones, back into it. Each
  // pattern is convex; together they may not be. All taken ones begin before this pattern, so the
  // path enters the first of them at a vertex that is still ahead.
  bool makes_cycle(const Plan& plan, const Pattern& pattern) const {
    if (plan.open.empty()) return false;
    const Band from = below(pattern.members);
    return std::any_of(plan.open.begin(), plan.open.end(), [&](const Open& open) {
      return leads_to(from, patterns_.pattern(open.id).members) &&
             leads_to(*open.below, pattern.members);
    });
  }

  Cover cover_of(const Plan& plan) const {
    Cover cover;
    cover.gain = plan.gain;
    for (const Taken* taken = plan.taken.get(); taken; taken = taken->before.get())
      cover.patterns.push_back(taken->id);
    std::reverse(cover.patterns.begin(), cover.patterns.end());
    return cover;
  }

  const Graph& graph_;
  const Patterns& patterns_;
  const SearchOptions& options_;
  std::vector<double> share_;
  size_t ring_ = 1;
};

// Unites neighbours, the best pair first, until none gains.
class Merger {
 public:
  // `order`: of the cover's patterns.
  Merger(const Graph& graph, Patterns* patterns, const Cover& cover, KernelOrder order, bool remote)
      : graph_(graph), patterns_(*patterns), remote_(remote), order_(std::move(order)) {
    node_.assign(graph.vertices.size(), -1);
    for (PatternId id : cover.patterns) add(patterns_.pattern(id).members, id);
    for (int v = 0; v < static_cast<int>(graph.vertices.size()); ++v)
      if (node_[static_cast<size_t>(v)] < 0) add({v}, -1);
  }

  Cover run() {
    for (size_t node = 0; node < nodes_.size(); ++node) push_pairs(node, neighbours(node));
    unite_all();
    if (remote_) {  // pairs without an edge, which share a virtual producer
      for (size_t node : alive_in_order()) push_remote(node);
      unite_all();
    }
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
    PatternId pattern = -1;  // -1: a single vertex
    bool alive = true;
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
    nodes_.push_back({std::move(members), pattern, true});
    return nodes_.size() - 1;
  }

  int kernel(size_t node) const { return order_.kernel(nodes_[node].members.front()); }
  int place(size_t node) const { return order_.place(kernel(node)); }

  std::vector<size_t> alive_in_order() const {
    std::vector<size_t> found;
    for (size_t node = 0; node < nodes_.size(); ++node)
      if (nodes_[node].alive) found.push_back(node);
    std::sort(found.begin(), found.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
    return found;
  }

  // Its producers and its consumers.
  std::vector<size_t> neighbours(size_t node) const {
    std::vector<size_t> found;
    auto see = [&](int vertex) {
      const auto other = static_cast<size_t>(node_[static_cast<size_t>(vertex)]);
      if (other != node) found.push_back(other);
    };
    for (int member : nodes_[node].members) {
      const Vertex& vertex = graph_.vertices[static_cast<size_t>(member)];
      for (int consumer : vertex.consumers) see(consumer);
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

  // Pairs the node with nodes that come shortly before it: of the same class, and of any.
  void push_remote(size_t node) {
    constexpr size_t kMostPartners = 4;
    constexpr int kFarthest = 256;
    if (!can_fuse(node)) return;
    const uint64_t key = patterns_.packing_class(nodes_[node].members);
    if (key == 0) return;
    for (const uint64_t from : {key, kAnyClass}) {
      std::vector<size_t>& known = of_class_[from];
      std::erase_if(known, [&](size_t other) {
        return !nodes_[other].alive || place(node) > place(other) + kFarthest;
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

  // Unites the nodes, unless a path leads from one to the other through a third.
  void unite(size_t a, size_t b, PatternId to) {
    const std::vector<int> both{kernel(a), kernel(b)};
    if (order_.makes_cycle(both)) return;
    order_.unite(both);
    nodes_[a].alive = nodes_[b].alive = false;
    const size_t united = add(patterns_.pattern(to).members, to);
    push_pairs(united, neighbours(united));
    if (!of_class_.empty()) push_remote(united);
  }

  static constexpr uint64_t kAnyClass = 0;

  const Graph& graph_;
  Patterns& patterns_;
  const bool remote_;
  KernelOrder order_;
  std::vector<Node> nodes_;
  std::vector<int> node_;  // by vertex
  std::priority_queue<Pair> queue_;
  std::unordered_map<uint64_t, std::vector<size_t>> of_class_;  // once packing has begun
};

}  // namespace

std::vector<Cover> search_covers(const Graph& graph, Patterns* patterns,
                                 const SearchOptions& options, int* broken) {
  std::vector<Cover> covers;
  for (const Cover& cover : CoverSearch(graph, *patterns, options).run()) {
    std::vector<Members> joined;
    for (PatternId id : cover.patterns) joined.push_back(patterns->pattern(id).members);
    if (std::optional<KernelOrder> order = KernelOrder::of(graph, joined))
      covers.push_back(Merger(graph, patterns, cover, std::move(*order), options.remote).run());
    else if (broken && graph.vertices.size() <= 2 * kSpan)
      ++*broken;
  }
  std::stable_sort(covers.begin(), covers.end(),
                   [](const Cover& a, const Cover& b) { return a.gain > b.gain; });
  return covers;
}

}  // namespace heddle::fuse
