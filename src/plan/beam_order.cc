// Beam search over the sets of tasks that have run (downsets of the task graph).
#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/check.h"
#include "plan/order.h"

namespace heddle::plan {
namespace {

constexpr int64_t kWidth = 64;  // with the default work

// A set of tasks that have run. Only tasks and values at its border are stored.
struct State {
  struct Count {
    int id, left;
  };
  int64_t live = 0, peak = 0;
  uint64_t set = 0;  // hash of the tasks that have run
  std::vector<int> ready;
  std::vector<Count> waiting;  // tasks: some predecessors have run; number of those that have not
  std::vector<Count> read;     // live values that have been read: number of readers left
};

struct Step {
  int64_t peak, live;
  uint64_t set;
  int parent, task;  // index in the beam; task that runs
};

uint64_t hash_of(int task) {
  uint64_t x = (static_cast<uint64_t>(task) + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Decrements the count of `id`, which starts at `all`, and returns it.
int count_down(std::vector<State::Count>& counts, int id, int all) {
  const auto found = std::find_if(counts.begin(), counts.end(),
                                  [&](const State::Count& count) { return count.id == id; });
  if (found == counts.end()) {
    if (all > 1) counts.push_back({id, all - 1});
    return all - 1;
  }
  if (--found->left > 0) return found->left;
  *found = counts.back();
  counts.pop_back();
  return 0;
}

class Beam {
 public:
  explicit Beam(const TaskGraph& graph)
      : graph_(graph), next_(graph.tasks.size()), readers_(graph.values.size()) {
    for (size_t t = 0; t < graph.tasks.size(); ++t) {
      for (int before : graph.tasks[t].after) next_[before].push_back(static_cast<int>(t));
      for (int value : graph.tasks[t].reads) ++readers_[value];
    }
  }

  std::vector<int> order(int64_t work) {
    most_width_ = std::max<int64_t>(1, kWidth * work / kBeamWork);
    State start;
    for (size_t t = 0; t < graph_.tasks.size(); ++t)
      if (graph_.tasks[t].after.empty()) start.ready.push_back(static_cast<int>(t));
    std::vector<State> beam = {start};
    std::vector<std::vector<Step>> taken;
    const size_t count = graph_.tasks.size();
    while (taken.size() < count) {
      std::vector<Step> steps;
      for (size_t s = 0; s < beam.size(); ++s) add_steps(beam[s], static_cast<int>(s), steps, work);
      HEDDLE_CHECK(!steps.empty(), "the tasks have a cycle");
      keep_best(steps, width(beam, work, std::ssize(graph_.tasks) - std::ssize(taken)));
      std::vector<State> next;
      for (const Step& step : steps) next.push_back(after(beam[step.parent], step));
      beam = std::move(next);
      taken.push_back(std::move(steps));
    }
    std::vector<int> order(count);
    for (size_t i = count, at = 0; i-- > 0;) {
      order[i] = taken[i][at].task;
      at = static_cast<size_t>(taken[i][at].parent);
    }
    return order;
  }

 private:
  // Narrows the beam so that the work suffices for all remaining steps.
  int64_t width(const std::vector<State>& beam, int64_t work, int64_t steps_left) const {
    int64_t ready = 1;
    for (const State& state : beam) ready = std::max(ready, std::ssize(state.ready));
    return std::clamp<int64_t>(work / (steps_left * ready), 1, most_width_);
  }

  int readers_left(const State& state, int value) const {
    for (const State::Count& count : state.read)
      if (count.id == value) return count.left;
    return readers_[value];
  }

  Step look(const State& state, int parent, int t) const {
    const TaskGraph::Task& task = graph_.tasks[t];
    int64_t made = 0, freed = 0, in_place = 0;
    for (int value : task.makes) {
      made += graph_.values[value].bytes;
      if (readers_[value] == 0 && !graph_.values[value].kept) freed += graph_.values[value].bytes;
    }
    for (int value : task.reads) {
      if (graph_.values[value].kept || readers_left(state, value) != 1) continue;
      freed += graph_.values[value].bytes;
      if (std::find(task.overwrites.begin(), task.overwrites.end(), value) != task.overwrites.end())
        in_place += graph_.values[value].bytes;
    }
    const int64_t most = state.live + made - in_place + task.workspace_bytes;
    return {std::max(state.peak, most), state.live + made - freed, state.set ^ hash_of(t), parent,
            t};
  }

  // A task that causes no new peak and does not increase live memory runs at once, without
  // alternatives.
  void add_steps(const State& state, int parent, std::vector<Step>& steps, int64_t& work) const {
    const size_t first = steps.size();
    for (int task : state.ready) {
      --work;
      const Step step = look(state, parent, task);
      if (step.peak == state.peak && step.live <= state.live) {
        steps.resize(first);
        steps.push_back(step);
        return;
      }
      steps.push_back(step);
    }
  }

  static void keep_best(std::vector<Step>& steps, int64_t width) {
    std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.live != b.live) return a.live < b.live;
      return a.parent != b.parent ? a.parent < b.parent : a.task < b.task;
    });
    std::unordered_set<uint64_t> seen;
    std::vector<Step> kept;
    for (const Step& step : steps) {
      if (std::ssize(kept) == width) break;
      if (seen.insert(step.set).second) kept.push_back(step);
    }
    steps = std::move(kept);
  }

  State after(const State& state, const Step& step) const {
    State next = state;
    next.live = step.live;
    next.peak = step.peak;
    next.set = step.set;
    next.ready.erase(std::find(next.ready.begin(), next.ready.end(), step.task));
    for (int value : graph_.tasks[step.task].reads) count_down(next.read, value, readers_[value]);
    for (int task : next_[step.task]) {
      const auto all = static_cast<int>(graph_.tasks[task].after.size());
      if (count_down(next.waiting, task, all) == 0) next.ready.push_back(task);
    }
    return next;
  }

  const TaskGraph& graph_;
  std::vector<std::vector<int>> next_;  // by task
  std::vector<int> readers_;            // by value
  int64_t most_width_ = 1;
};

}  // namespace

std::vector<int> beam_order(const TaskGraph& graph, int64_t work) {
  if (graph.tasks.empty()) return {};
  return Beam(graph).order(work);
}

}  // namespace heddle::plan
