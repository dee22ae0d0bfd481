// KernelOrder against paths that are searched from scratch.
#include "fuse/kernel_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace heddle::fuse {
namespace {

// By kernel: the kernels that its members lead to directly.
class Naive {
 public:
  Naive(const Graph& graph, const KernelOrder& order)
      : order_(order), next_(graph.vertices.size()) {
    for (size_t v = 0; v < graph.vertices.size(); ++v)
      for (int consumer : graph.vertices[v].consumers)
        if (order.kernel(static_cast<int>(v)) != order.kernel(consumer))
          next_[static_cast<size_t>(order.kernel(static_cast<int>(v)))].insert(
              order.kernel(consumer));
  }
  std::set<int> reached(int from) const {
    std::set<int> found;
    std::vector<int> work{from};
    while (!work.empty()) {
      const int at = work.back();
      work.pop_back();
      for (int next : next_[static_cast<size_t>(at)])
        if (found.insert(next).second) work.push_back(next);
    }
    return found;
  }
  bool makes_cycle(const std::vector<int>& row) const {
    auto inside = [&](int kernel) {
      return std::find(row.begin(), row.end(), kernel) != row.end();
    };
    for (int from : row)
      for (int next : next_[static_cast<size_t>(from)]) {
        if (inside(next)) continue;
        const std::set<int> behind = reached(next);
        if (std::any_of(behind.begin(), behind.end(), inside)) return true;
      }
    return false;
  }
  bool is_ordered() const {
    for (size_t k = 0; k < next_.size(); ++k)
      for (int next : next_[k])
        if (order_.place(static_cast<int>(k)) >= order_.place(next)) return false;
    return true;
  }

 private:
  const KernelOrder& order_;
  std::vector<std::set<int>> next_;
};

Graph random_graph(std::mt19937* random, int count) {
  Graph graph;
  for (int v = 0; v < count; ++v) {
    std::vector<int> producers;
    for (int i = static_cast<int>((*random)() % 3); i > 0 && v > 0; --i)
      producers.push_back(v - 1 - static_cast<int>((*random)() % std::min(v, 9)));
    graph.add(producers);
  }
  return graph;
}

TEST(KernelOrder, FindsThePathsThatThereAre) {
  std::mt19937 random(3);
  int united = 0, refused = 0;
  for (int round = 0; round < 60; ++round) {
    const Graph graph = random_graph(&random, 40);
    KernelOrder order(graph);
    for (int step = 0; step < 60; ++step) {
      std::set<int> row;
      for (size_t i = 2 + random() % 2; i > 0; --i)
        row.insert(order.kernel(static_cast<int>(random() % 40)));
      const std::vector<int> kernels(row.begin(), row.end());
      const Naive naive(graph, order);
      ASSERT_TRUE(naive.is_ordered());
      ASSERT_EQ(order.makes_cycle(kernels), naive.makes_cycle(kernels));
      ASSERT_EQ(order.leads_to(kernels.front(), kernels.back()),
                naive.reached(kernels.front()).count(kernels.back()) > 0);
      if (kernels.size() < 2) continue;
      if (order.makes_cycle(kernels)) {
        ++refused;
        continue;
      }
      order.unite(kernels);
      ++united;
    }
  }
  EXPECT_GT(united, 500);
  EXPECT_GT(refused, 500);
}

// Whether some kernel leads to itself, through others.
bool has_cycle(const Graph& graph, const std::vector<Members>& joined) {
  std::vector<int> kernel(graph.vertices.size());
  for (size_t v = 0; v < kernel.size(); ++v) kernel[v] = static_cast<int>(v);
  for (const Members& members : joined)
    for (int member : members) kernel[static_cast<size_t>(member)] = members[0];
  std::map<int, std::set<int>> leads;
  for (size_t v = 0; v < kernel.size(); ++v)
    for (int consumer : graph.vertices[v].consumers)
      if (kernel[v] != kernel[static_cast<size_t>(consumer)])
        leads[kernel[v]].insert(kernel[static_cast<size_t>(consumer)]);
  for (bool grows = true; grows;) {
    grows = false;
    for (auto& [from, to] : leads)
      for (int middle : std::set<int>(to))
        if (const auto found = leads.find(middle); found != leads.end())
          for (int next : found->second) grows |= to.insert(next).second;
  }
  return std::any_of(leads.begin(), leads.end(),
                     [](const auto& one) { return one.second.count(one.first) > 0; });
}

TEST(KernelOrder, OrdersExactlyWhatHasNoCycle) {
  std::mt19937 random(4);
  int cycles = 0;
  for (int round = 0; round < 300; ++round) {
    const Graph graph = random_graph(&random, 24);
    std::vector<Members> joined;
    std::vector<bool> taken(24, false);
    for (int sets = 3; sets > 0; --sets) {
      std::set<int> members;
      for (int i = 0; i < 3; ++i)
        if (const size_t v = random() % 24; !taken[v]) members.insert(static_cast<int>(v));
      for (int member : members) taken[static_cast<size_t>(member)] = true;
      if (members.size() > 1) joined.emplace_back(members.begin(), members.end());
    }
    const bool cycle = has_cycle(graph, joined);
    cycles += cycle;
    ASSERT_EQ(is_acyclic(graph, joined), !cycle);
  }
  EXPECT_GT(cycles, 50);
  EXPECT_LT(cycles, 250);
}

TEST(KernelOrder, OfKernelsThatWaitForOneAnotherThereIsNone) {
  Graph graph;
  const int a = graph.add({}), b = graph.add({});
  const int after_a = graph.add({a}), after_b = graph.add({b});
  EXPECT_TRUE(KernelOrder::of(graph, {{a, after_b}}));
  EXPECT_TRUE(KernelOrder::of(graph, {{b, after_a}}));
  EXPECT_FALSE(KernelOrder::of(graph, {{a, after_b}, {b, after_a}}));
}

// Edges added or removed later count from then on.
TEST(KernelOrder, EdgesComeAndGo) {
  Graph graph;
  const int a = graph.add({});
  const int b = graph.add({a});
  const int c = graph.add({b});
  const KernelOrder order(graph);
  EXPECT_TRUE(order.makes_cycle({a, c}));
  graph.remove_edge(b, c);
  EXPECT_FALSE(order.makes_cycle({a, c}));
  graph.add_edge(b, c);
  graph.add_edge(b, c);
  EXPECT_EQ(graph.vertices[static_cast<size_t>(c)].producers, std::vector<int>{b});
  EXPECT_TRUE(order.makes_cycle({a, c}));
}

TEST(InOrder, LeavesOutWhatIsOnACycle) {
  EXPECT_EQ(in_order({{1}, {}, {0}}, {0, 1, 2}), (std::vector<int>{1, 0, 2}));
  EXPECT_EQ(in_order({{1}, {0}, {}, {0}}, {0, 1, 2, 3}), (std::vector<int>{2}));
  EXPECT_EQ(in_order({{}, {}, {}}, {2, 0, 1}), (std::vector<int>{1, 2, 0}));
}

}  // namespace
}  // namespace heddle::fuse
