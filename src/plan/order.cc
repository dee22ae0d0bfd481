#include "plan/order.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

#include "base/check.h"

namespace heddle::plan {
namespace {

using Task = TaskGraph::Task;

std::vector<std::vector<int>> successors(const TaskGraph& graph) {
  std::vector<std::vector<int>> next(graph.tasks.size());
  for (size_t t = 0; t < graph.tasks.size(); ++t)
    for (int before : graph.tasks[t].after) next[before].push_back(static_cast<int>(t));
  return next;
}

std::vector<int> waits(const TaskGraph& graph) {
  std::vector<int> count;
  for (const Task& task : graph.tasks) count.push_back(static_cast<int>(task.after.size()));
  return count;
}

// Takes ready tasks from `queue` until none are left.
template <typename Queue, typename Push, typename Pop>
std::vector<int> drain(const TaskGraph& graph, Queue& queue, Push push, Pop pop) {
  const std::vector<std::vector<int>> next = successors(graph);
  std::vector<int> waiting = waits(graph), order;
  for (size_t t = 0; t < graph.tasks.size(); ++t)
    if (waiting[t] == 0) push(static_cast<int>(t));
  while (!queue.empty()) {
    const int task = pop();
    order.push_back(task);
    for (int after : next[task])
      if (--waiting[after] == 0) push(after);
  }
  HEDDLE_CHECK(order.size() == graph.tasks.size(), "the tasks have a cycle");
  return order;
}

// Number of readers of each value.
std::vector<int> reader_counts(const TaskGraph& graph) {
  std::vector<int> readers(graph.values.size());
  for (const Task& task : graph.tasks)
    for (int value : task.reads) ++readers[value];
  return readers;
}

int64_t made_bytes(const TaskGraph& graph, const Task& task) {
  int64_t bytes = 0;
  for (int value : task.makes) bytes += graph.values[value].bytes;
  return bytes;
}

// Bytes that a task needs while it runs, in addition to live values; `readers` left of each value.
int64_t running_bytes(const TaskGraph& graph, const Task& task, const std::vector<int>& readers) {
  int64_t bytes = made_bytes(graph, task) + task.workspace_bytes;
  for (int value : task.overwrites)
    if (readers[value] == 1 && !graph.values[value].kept) bytes -= graph.values[value].bytes;
  return bytes;
}

}  // namespace

std::vector<int> as_is_order(const TaskGraph& graph) {
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  return drain(
      graph, ready, [&](int task) { ready.push(task); },
      [&] {
        const int task = ready.top();
        ready.pop();
        return task;
      });
}

std::vector<int> bfs_order(const TaskGraph& graph) {
  std::queue<int> ready;
  return drain(
      graph, ready, [&](int task) { ready.push(task); },
      [&] {
        const int task = ready.front();
        ready.pop();
        return task;
      });
}

// Post-order over predecessors, those with the largest results first, from the tasks without
// successors.
std::vector<int> dfs_order(const TaskGraph& graph) {
  const size_t count = graph.tasks.size();
  std::vector<std::vector<int>> before(count);
  std::vector<int64_t> bytes(count);
  for (size_t t = 0; t < count; ++t) bytes[t] = made_bytes(graph, graph.tasks[t]);
  std::vector<bool> waited_for(count);
  for (size_t t = 0; t < count; ++t) {
    before[t] = graph.tasks[t].after;
    std::stable_sort(before[t].begin(), before[t].end(),
                     [&](int a, int b) { return bytes[a] > bytes[b]; });
    for (int b : before[t]) waited_for[b] = true;
  }
  struct Frame {
    int task;
    size_t next;
  };
  std::vector<bool> seen(count);
  std::vector<int> order;
  std::vector<Frame> stack;
  for (size_t start = 0; start < count; ++start) {
    if (waited_for[start]) continue;
    stack.push_back({static_cast<int>(start), 0});
    seen[start] = true;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == before[frame.task].size()) {
        order.push_back(frame.task);
        stack.pop_back();
        continue;
      }
      const int next = before[frame.task][frame.next++];
      if (seen[next]) continue;
      seen[next] = true;
      stack.push_back({next, 0});
    }
  }
  HEDDLE_CHECK(order.size() == count, "the tasks have a cycle");
  return order;
}

// Picks the ready task that leaves the least memory live; of equals the one that needs the least
// while it runs, then the first. Scores change only where a value has one reader left, so only
// those are updated.
std::vector<int> list_order(const TaskGraph& graph) {
  const size_t count = graph.tasks.size();
  std::vector<int> readers = reader_counts(graph), waiting = waits(graph), order;
  const std::vector<std::vector<int>> next = successors(graph);
  std::vector<std::vector<int>> readers_of(graph.values.size());
  for (size_t t = 0; t < count; ++t)
    for (int value : graph.tasks[t].reads) readers_of[value].push_back(static_cast<int>(t));
  using Score = std::tuple<int64_t, int64_t, int>;
  auto score = [&](int t) {
    const Task& task = graph.tasks[t];
    int64_t growth = 0;
    for (int value : task.makes)
      if (readers[value] > 0 || graph.values[value].kept) growth += graph.values[value].bytes;
    for (int value : task.reads)
      if (readers[value] == 1 && !graph.values[value].kept) growth -= graph.values[value].bytes;
    return Score{growth, running_bytes(graph, task, readers), t};
  };
  std::set<Score> ready;
  std::vector<Score> score_of(count);
  std::vector<bool> is_ready(count);
  auto push = [&](int t) {
    score_of[t] = score(t);
    is_ready[t] = true;
    ready.insert(score_of[t]);
  };
  for (size_t t = 0; t < count; ++t)
    if (waiting[t] == 0) push(static_cast<int>(t));
  while (!ready.empty()) {
    const int task = std::get<2>(*ready.begin());
    ready.erase(ready.begin());
    is_ready[task] = false;
    order.push_back(task);
    for (int value : graph.tasks[task].reads) {
      if (--readers[value] != 1) continue;
      for (int reader : readers_of[value]) {
        if (!is_ready[reader]) continue;
        ready.erase(score_of[reader]);
        push(reader);
      }
    }
    for (int after : next[task])
      if (--waiting[after] == 0) push(after);
  }
  HEDDLE_CHECK(order.size() == count, "the tasks have a cycle");
  return order;
}

int64_t peak_bytes(const TaskGraph& graph, const std::vector<int>& order) {
  std::vector<int> readers = reader_counts(graph);
  int64_t live = 0, peak = 0;
  for (int t : order) {
    const Task& task = graph.tasks[t];
    peak = std::max(peak, live + running_bytes(graph, task, readers));
    live += made_bytes(graph, task);
    for (int value : task.reads)
      if (--readers[value] == 0 && !graph.values[value].kept) live -= graph.values[value].bytes;
    for (int value : task.makes)
      if (readers[value] == 0 && !graph.values[value].kept) live -= graph.values[value].bytes;
  }
  return peak;
}

}  // namespace heddle::plan
