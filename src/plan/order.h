// Orders of tasks. A task makes values and reads values; it runs while its inputs are still there,
// and afterwards values without readers to come are freed; kept values are never freed.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::plan {

struct TaskGraph {
  struct Task {
    std::vector<int> after;         // tasks that run before it
    std::vector<int> makes, reads;  // values; each value once
    std::vector<int> overwrites;    // reads whose memory a made value takes where they die here
    int64_t workspace_bytes = 0;
  };
  struct Value {
    int64_t bytes = 0;
    bool kept = false;
  };
  std::vector<Task> tasks;  // the given order, but for `after` edges that point forward
  std::vector<Value> values;
};

// Each is a permutation of the tasks that honours `after`, the same for the same graph. The graph
// has no cycle.
std::vector<int> as_is_order(const TaskGraph& graph);  // the given order, repaired where it must
std::vector<int> bfs_order(const TaskGraph& graph);    // by distance from the inputs
std::vector<int> dfs_order(const TaskGraph& graph);    // each result's cone at a time, large first
std::vector<int> list_order(const TaskGraph& graph);   // least growth of memory next
// Least peak, by beam search over the sets of tasks that can have run. `work`: ready tasks looked
// at.
inline constexpr int64_t kBeamWork = 4'000'000;
inline constexpr int64_t kBeamWorkUnderLimit = 64'000'000;
std::vector<int> beam_order(const TaskGraph& graph, int64_t work = kBeamWork);

// Most bytes live at one task.
int64_t peak_bytes(const TaskGraph& graph, const std::vector<int>& order);

}  // namespace heddle::plan
