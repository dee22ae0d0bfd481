// The explorer's search on graphs of bare vertices: patterns, covers, cycles.
#include "fuse/patterns.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>
#include <set>

#include "fuse/kernel_order.h"

namespace heddle::fuse {
namespace {

// Every edge inside a pattern saves the bytes of its producer, every member but one a launch; a
// pattern holds at most `room` of the vertices' sizes.
class Bytes : public Evaluator {
 public:
  explicit Bytes(const Graph& graph) : graph_(graph), bytes(graph.vertices.size(), 1) {
    size.assign(graph.vertices.size(), 1);
  }
  double gain(const Members& members) override {
    double saved = launch * static_cast<double>(members.size() - 1);
    for (int member : members) {
      bool leaves = graph_.vertices[member].consumers.empty();
      bool inside = false;
      for (int consumer : graph_.vertices[member].consumers) {
        if (std::binary_search(members.begin(), members.end(), consumer)) {
          saved += bytes[member];
          inside = true;
        } else {
          leaves = true;
        }
      }
      if (inside && !leaves) saved += bytes[member];
    }
    return saved;
  }
  bool can_build(const Members& members) override {
    double total = 0;
    for (int member : members) total += size[member];
    return total <= room;
  }

 private:
  const Graph& graph_;

 public:
  std::vector<double> bytes, size;
  double launch = 1, room = 1e9;
};

std::vector<Members> members_of(const Patterns& patterns, const Cover& cover) {
  std::vector<Members> result;
  for (PatternId id : cover.patterns) result.push_back(patterns.pattern(id).members);
  return result;
}

TEST(Patterns, ChainBecomesOne) {
  Graph graph;
  for (int i = 0; i < 10; ++i) graph.add(i ? std::vector<int>{i - 1} : std::vector<int>{});
  Bytes bytes(graph);
  Patterns patterns(graph, &bytes, {});
  std::vector<Cover> covers = search_covers(graph, &patterns, {});
  ASSERT_FALSE(covers.empty());
  ASSERT_EQ(covers[0].patterns.size(), 1u);
  EXPECT_EQ(patterns.pattern(covers[0].patterns[0]).members.size(), 10u);
}

// The published example: V8 with the consumers V5, V6 (one group) and V7.
TEST(Patterns, Figure4) {
  Graph graph;
  const int v8 = graph.add({});
  const int v7 = graph.add({v8}), v6 = graph.add({v8}), v5 = graph.add({v8});
  const int v4 = graph.add({v7}), v3 = graph.add({v6}), v2 = graph.add({v5});
  const int v1 = graph.add({v3, v4});
  graph.add({v1, v2});
  Bytes bytes(graph);
  Patterns patterns(graph, &bytes, {});
  const std::vector<PatternId>& found = patterns.of(v8);
  ASSERT_EQ(found.size(), 3u);
  for (PatternId id : found) EXPECT_EQ(patterns.pattern(id).members.front(), v8);
  EXPECT_EQ(patterns.pattern(found[0]).members.size(), 9u);
  EXPECT_GE(patterns.pattern(found[0]).gain, patterns.pattern(found[1]).gain);
}

// A and C without B, which is between them.
TEST(Cycles, Figure6) {
  Graph graph;
  const int a = graph.add({});
  const int b = graph.add({a}, /*can_fuse=*/false);
  const int c = graph.add({a, b});
  Bytes bytes(graph);
  Patterns patterns(graph, &bytes, {});
  EXPECT_TRUE(patterns.of(a).empty());
  EXPECT_FALSE(is_acyclic(graph, {{a, c}}));
  EXPECT_TRUE(is_acyclic(graph, {{a, b, c}}));
}

// Convexity of a proposal is checked before its code.
TEST(Patterns, AProposalIsConvex) {
  Graph graph;
  const int a = graph.add({});
  const int b = graph.add({a});
  const int c = graph.add({a, b});
  Bytes bytes(graph);
  Patterns patterns(graph, &bytes, {});
  EXPECT_FALSE(patterns.propose({a, c})) << "b would wait for the group, and the group for b";
  EXPECT_TRUE(patterns.propose({a, b, c}));
}

TEST(Cycles, TwoConvexPatterns) {
  Graph graph;
  const int p1 = graph.add({}), q2 = graph.add({});
  const int q1 = graph.add({p1}), p2 = graph.add({q2});
  EXPECT_TRUE(is_acyclic(graph, {{p1, p2}}));
  EXPECT_TRUE(is_acyclic(graph, {{q2, q1}}));
  EXPECT_FALSE(is_acyclic(graph, {{p1, p2}, {q2, q1}}));
}

// B reads A, C reads A: with room for two only, the larger edge wins, in either order.
TEST(Cover, EitherOr) {
  for (bool first : {true, false}) {
    Graph graph;
    const int a = graph.add({});
    const int b = graph.add({a}), c = graph.add({a});
    graph.add({b}, false);
    graph.add({c}, false);
    const int d = graph.add({first ? b : c});
    Bytes bytes(graph);
    bytes.room = 2;
    bytes.bytes = {5, 1, 1, 0, 0, 0};
    bytes.bytes[first ? b : c] = 9;
    Patterns patterns(graph, &bytes, {});
    std::vector<Cover> covers = search_covers(graph, &patterns, {});
    // {b, d} and {a, c}, rather than {a, b} and d alone.
    const std::vector<Members> chosen = members_of(patterns, covers[0]);
    EXPECT_EQ(chosen.size(), 2u);
    EXPECT_TRUE(std::count(chosen.begin(), chosen.end(), Members{first ? b : c, d}));
    EXPECT_TRUE(std::count(chosen.begin(), chosen.end(), Members{a, first ? c : b}));
  }
}

Graph random_graph(std::mt19937* random, int count, int back) {
  Graph graph;
  for (int v = 0; v < count; ++v) {
    std::vector<int> producers;
    const int wanted = v == 0 ? 0 : static_cast<int>((*random)() % 3) + (v > 2);
    for (int i = 0; i < wanted; ++i)
      producers.push_back(v - 1 - static_cast<int>((*random)() % std::min(v, back)));
    graph.add(producers, (*random)() % 8 != 0);
  }
  return graph;
}

// The same, with chains of several operators that cannot be fused.
Graph graph_with_rows(std::mt19937* random, int count) {
  Graph graph;
  auto earlier = [&](int v) { return v - 1 - static_cast<int>((*random)() % std::min(v, 12)); };
  for (int v = 0; v < count; v = static_cast<int>(graph.vertices.size())) {
    if (v < 3 || (*random)() % 5 != 0) {
      std::vector<int> producers;
      for (int i = v == 0 ? 0 : 1 + static_cast<int>((*random)() % 2); i > 0; --i)
        producers.push_back(earlier(v));
      graph.add(producers);
      continue;
    }
    int last = graph.add({earlier(v)}, /*can_fuse=*/false);
    for (int more = static_cast<int>((*random)() % 4); more > 0; --more)
      last = graph.add({last}, /*can_fuse=*/false);
    graph.add({last, earlier(v)});
  }
  return graph;
}

// The best sum of gains over all partitions into convex patterns that together have no cycle.
class Exact {
 public:
  Exact(const Graph& graph, Bytes* bytes) : graph_(graph), bytes_(bytes), reach_(graph) {
    for (int v = 0; v < static_cast<int>(graph.vertices.size()); ++v)
      if (graph.vertices[v].can_fuse) free_.push_back(v);
    try_from(0);
  }
  double best() const { return best_; }

 private:
  void try_from(size_t i) {
    if (i == free_.size()) {
      double total = 0;
      std::vector<Members> kept;
      for (const Members& part : parts_) {
        if (part.size() < 2) continue;
        if (!bytes_->can_build(part)) return;
        total += bytes_->gain(part);
        kept.push_back(part);
      }
      if (total > best_ && connected(kept) && is_acyclic(graph_, kept)) best_ = total;
      return;
    }
    for (size_t p = 0; p <= parts_.size(); ++p) {
      if (p == parts_.size()) parts_.emplace_back();
      parts_[p].push_back(free_[i]);
      try_from(i + 1);
      parts_[p].pop_back();
      if (parts_[p].empty()) {
        parts_.pop_back();
        break;
      }
    }
  }
  // Launches saved by packing unconnected patterns are left to another step.
  bool connected(const std::vector<Members>& kept) const {
    for (const Members& part : kept) {
      std::set<int> reached{part[0]};
      for (size_t round = 0; round < part.size(); ++round)
        for (int member : part)
          for (int producer : graph_.vertices[member].producers)
            if (std::binary_search(part.begin(), part.end(), producer) &&
                (reached.count(member) || reached.count(producer)))
              reached.insert({member, producer});
      if (reached.size() != part.size()) return false;
    }
    return true;
  }

  const Graph& graph_;
  Bytes* bytes_;
  Reach reach_;
  std::vector<int> free_;
  std::vector<Members> parts_;
  double best_ = 0;
};

TEST(Cover, NearTheExactOptimum) {
  std::mt19937 random(1);
  double found = 0, best = 0;
  for (int round = 0; round < 60; ++round) {
    Graph graph = random_graph(&random, 9, 5);
    Bytes bytes(graph);
    for (double& b : bytes.bytes) b = 1 + static_cast<double>(random() % 9);
    for (double& s : bytes.size) s = 1 + static_cast<double>(random() % 3);
    bytes.room = 7;
    Patterns patterns(graph, &bytes, {});
    const Cover cover = search_covers(graph, &patterns, {})[0];
    EXPECT_TRUE(is_acyclic(graph, members_of(patterns, cover)));
    const double exact = Exact(graph, &bytes).best();
    EXPECT_LE(cover.gain, exact + 1e-9);
    found += cover.gain;
    best += exact;
  }
  std::printf("gain of the search by the exact optimum: %.3f\n", found / best);
  EXPECT_GE(found, 0.95 * best);
}

TEST(Cover, DisjointAndAcyclicOnRandomGraphs) {
  std::mt19937 random(2);
  for (int round = 0; round < 1200; ++round) {
    Graph graph = round % 4 == 0 ? random_graph(&random, 60, 3 + static_cast<int>(random() % 20))
                                 : graph_with_rows(&random, 60);
    Bytes bytes(graph);
    bytes.room = 4 + static_cast<double>(random() % 20);
    for (double& b : bytes.bytes) b = 1 + static_cast<double>(random() % 9);
    Patterns patterns(graph, &bytes, {});
    int broken = 0;
    for (const Cover& cover : search_covers(graph, &patterns, {}, &broken)) {
      const std::vector<Members> chosen = members_of(patterns, cover);
      std::set<int> used;
      double gain = 0;
      for (const Members& members : chosen) {
        for (int member : members) {
          EXPECT_TRUE(used.insert(member).second) << "taken twice";
          EXPECT_TRUE(graph.vertices[member].can_fuse);
        }
        EXPECT_TRUE(bytes.can_build(members));
        gain += bytes.gain(members);
      }
      EXPECT_NEAR(gain, cover.gain, 1e-9);
      EXPECT_TRUE(is_acyclic(graph, chosen));
    }
    EXPECT_EQ(broken, 0) << "round " << round;
  }
}

// All are small enough to be packed.
class Small : public Bytes {
 public:
  using Bytes::Bytes;
  uint64_t packing_class(const Members&) override { return 5; }
};

std::vector<Members> packed_cover(const Graph& graph, Bytes* bytes, bool remote) {
  SearchOptions options;
  options.remote = remote;
  Patterns patterns(graph, bytes, options);
  return members_of(patterns, search_covers(graph, &patterns, options)[0]);
}

// The published example: a virtual producer of all vertices makes unconnected patterns neighbours,
// and they become one.
TEST(Packing, Figure5) {
  Graph graph;
  const int a = graph.add({}), b = graph.add({a});
  const int c = graph.add({}), d = graph.add({c});
  Small small(graph);
  EXPECT_EQ(packed_cover(graph, &small, true), (std::vector<Members>{{a, b, c, d}}));
  EXPECT_EQ(packed_cover(graph, &small, false), (std::vector<Members>{{a, b}, {c, d}}));
  Bytes large(graph);  // none is small
  EXPECT_EQ(packed_cover(graph, &large, true), (std::vector<Members>{{a, b}, {c, d}}));
}

// Not if one waits for the other through operators that cannot be fused.
TEST(Packing, WhatWaitsIsNotPacked) {
  Graph graph;
  const int a = graph.add({}), b = graph.add({a});
  const int sort = graph.add({b}, /*can_fuse=*/false);
  const int again = graph.add({sort}, /*can_fuse=*/false);
  const int c = graph.add({again}), d = graph.add({c});
  Small small(graph);
  EXPECT_EQ(packed_cover(graph, &small, true), (std::vector<Members>{{a, b}, {c, d}}));
}

TEST(Patterns, WorkGrowsWithTheGraph) {
  std::vector<double> unions;
  for (int count : {1000, 8000}) {
    std::mt19937 random(3);
    Graph graph = random_graph(&random, count, 12);
    Bytes bytes(graph);
    bytes.room = 20;
    Patterns patterns(graph, &bytes, {});
    search_covers(graph, &patterns, {});
    unions.push_back(static_cast<double>(patterns.unions()) / count);
  }
  EXPECT_LT(unions[1], 1.15 * unions[0]);
}

}  // namespace
}  // namespace heddle::fuse
