// Orders of tasks. A task makes and reads values; its inputs are alive while it runs, and
// afterwards values without remaining readers are freed; kept values are never freed.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::plan {

struct TaskGraph {
  struct Task {
    std::vector<int> after;         // tasks that run before it
    std::vector<int> makes, reads;  // values; each value once
    std::vector<int> overwrites;    // values read whose memory a result takes if they die here
    int64_t workspace_bytes = 0;
  };
  struct Value {
    int64_t bytes = 0;
    bool kept = false;
  };
  std::vector<Task> tasks;  // in the given order, but `after` edges may point forward
  std::vector<Value> values;
};

// Each returns a permutation of the tasks that honours `after` and depends on the graph alone. The
// graph must have no cycle.
std::vector<int> as_is_order(const TaskGraph& graph);  // the given order, repaired where it must
std::vector<int> bfs_order(const TaskGraph& graph);    // by distance from the inputs
std::vector<int> dfs_order(const TaskGraph& graph);    // one result's cone at a time, large first
std::vector<int> list_order(const TaskGraph& graph);   // greedy: least growth of memory next
// Least peak, by beam search over the sets of tasks that may have run. `work`: bound on the ready
// tasks examined.
inline constexpr int64_t kBeamWork = 4'000'000;
inline constexpr int64_t kBeamWorkUnderLimit = 64'000'000;
std::vector<int> beam_order(const TaskGraph& graph, int64_t work = kBeamWork);

// The largest number of bytes alive while a task runs.
int64_t peak_bytes(const TaskGraph& graph, const std::vector<int>& order);

}  // namespace heddle::plan
