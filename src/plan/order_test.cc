#include "plan/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace heddle::plan {
namespace {

// k1, k2 -> k3 and k4, k5 -> k6, all results 1 G, those of k3 and k6 kept (runtime §2).
TaskGraph seed_example() {
  TaskGraph graph;
  graph.values.assign(6, {int64_t{1} << 30, false});
  graph.values[2].kept = graph.values[5].kept = true;
  for (int k = 0; k < 6; ++k) {
    TaskGraph::Task task;
    task.makes = {k};
    if (k == 2 || k == 5) task.after = task.reads = {k - 2, k - 1};
    graph.tasks.push_back(task);
  }
  return graph;
}

TEST(order, SeedExample) {
  const TaskGraph graph = seed_example();
  EXPECT_EQ(bfs_order(graph), (std::vector<int>{0, 1, 3, 4, 2, 5}));
  EXPECT_EQ(peak_bytes(graph, bfs_order(graph)), int64_t{5} << 30);
  for (const auto& order :
       {as_is_order(graph), dfs_order(graph), list_order(graph), beam_order(graph)})
    EXPECT_EQ(peak_bytes(graph, order), int64_t{4} << 30);
}

TaskGraph random_graph(std::mt19937_64& random, int tasks) {
  TaskGraph graph;
  for (int t = 0; t < tasks; ++t) {
    graph.values.push_back({static_cast<int64_t>(1 + random() % 100), random() % 8 == 0});
    TaskGraph::Task task;
    task.makes = {t};
    for (int r = 0; t > 0 && r < static_cast<int>(random() % 3); ++r) {
      const int from = static_cast<int>(random() % static_cast<uint64_t>(t));
      if (std::find(task.reads.begin(), task.reads.end(), from) == task.reads.end())
        task.reads.push_back(from);
    }
    task.after = task.reads;
    if (t > 0 && random() % 10 == 0) {
      const int before = static_cast<int>(random() % static_cast<uint64_t>(t));
      if (std::find(task.after.begin(), task.after.end(), before) == task.after.end())
        task.after.push_back(before);
    }
    if (!task.reads.empty() && random() % 3 == 0) {
      const int from = task.reads[0];
      if (graph.values[from].bytes >= 10) {
        graph.values[t].bytes = graph.values[from].bytes;
        task.overwrites = {from};
      }
    }
    task.workspace_bytes = random() % 5 == 0 ? static_cast<int64_t>(random() % 50) : 0;
    graph.tasks.push_back(task);
  }
  return graph;
}

bool is_valid(const TaskGraph& graph, const std::vector<int>& order) {
  std::vector<int> place(graph.tasks.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int>(i);
  if (order.size() != graph.tasks.size() || std::count(place.begin(), place.end(), -1) != 0)
    return false;
  for (size_t t = 0; t < graph.tasks.size(); ++t)
    for (int before : graph.tasks[t].after)
      if (place[before] >= place[t]) return false;
  return true;
}

// The least peak of all orders, by dynamic programming over the sets of tasks that have run.
int64_t optimal_peak(const TaskGraph& graph) {
  const size_t count = graph.tasks.size();
  std::vector<uint32_t> after(count), readers(count);
  for (size_t t = 0; t < count; ++t) {
    for (int before : graph.tasks[t].after) after[t] |= 1u << before;
    for (int value : graph.tasks[t].reads) readers[value] |= 1u << t;
  }
  auto live = [&](uint32_t done) {
    int64_t bytes = 0;
    for (size_t v = 0; v < count; ++v)
      if ((done >> v & 1) && (graph.values[v].kept || (readers[v] & ~done) != 0))
        bytes += graph.values[v].bytes;
    return bytes;
  };
  std::vector<int64_t> best(size_t{1} << count, INT64_MAX);
  best[0] = 0;
  for (uint32_t done = 0; done < best.size(); ++done) {
    if (best[done] == INT64_MAX) continue;
    for (size_t t = 0; t < count; ++t) {
      if ((done >> t & 1) || (after[t] & ~done) != 0) continue;
      int64_t step = live(done) + graph.values[t].bytes + graph.tasks[t].workspace_bytes;
      for (int v : graph.tasks[t].overwrites)
        if (!graph.values[v].kept && (readers[v] & ~done) == (1u << t))
          step -= graph.values[v].bytes;
      int64_t& next = best[done | 1u << t];
      next = std::min(next, std::max(best[done], step));
    }
  }
  return best.back();
}

TEST(order, AllAreValidAndBeamIsAtTheOptimum) {
  std::mt19937_64 random(11);
  double list_sum = 0, bfs_sum = 0, best_sum = 0, beam_sum = 0, optimum_sum = 0;
  int beam_optimal = 0;
  for (int round = 0; round < 100; ++round) {
    const TaskGraph graph = random_graph(random, 12);
    const int64_t optimum = optimal_peak(graph);
    int64_t best = INT64_MAX;
    for (const auto& order : {as_is_order(graph), bfs_order(graph), dfs_order(graph),
                              list_order(graph), beam_order(graph)}) {
      ASSERT_TRUE(is_valid(graph, order));
      ASSERT_GE(peak_bytes(graph, order), optimum);
      best = std::min(best, peak_bytes(graph, order));
    }
    list_sum += static_cast<double>(peak_bytes(graph, list_order(graph)));
    bfs_sum += static_cast<double>(peak_bytes(graph, bfs_order(graph)));
    best_sum += static_cast<double>(best);
    beam_sum += static_cast<double>(peak_bytes(graph, beam_order(graph)));
    beam_optimal += peak_bytes(graph, beam_order(graph)) == optimum;
    optimum_sum += static_cast<double>(optimum);
  }
  EXPECT_LT(list_sum, bfs_sum);
  EXPECT_LT(list_sum, 1.25 * optimum_sum);
  EXPECT_LE(best_sum, 1.001 * optimum_sum);
  EXPECT_LE(beam_sum, 1.001 * optimum_sum);
  EXPECT_GE(beam_optimal, 98);
}

TEST(order, EdgesThatPointForwardAreHonoured) {
  TaskGraph graph = seed_example();
  graph.tasks[0].after = {5};  // the first one last
  graph.tasks[2].after = {1};
  graph.tasks[2].reads = {1};
  for (const auto& order : {as_is_order(graph), bfs_order(graph), dfs_order(graph),
                            list_order(graph), beam_order(graph)})
    EXPECT_TRUE(is_valid(graph, order));
}

TEST(order, LargeGraphsAreQuick) {
  std::mt19937_64 random(5);
  const TaskGraph graph = random_graph(random, 20000);
  for (const auto& order : {as_is_order(graph), bfs_order(graph), dfs_order(graph),
                            list_order(graph), beam_order(graph)})
    ASSERT_TRUE(is_valid(graph, order));
}

}  // namespace
}  // namespace heddle::plan
