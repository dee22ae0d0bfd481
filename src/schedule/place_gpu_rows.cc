#include "schedule/place_gpu_rows.h"

#include <algorithm>
#include <optional>

#include "schedule/place_rows.h"
#include "schedule/strategy.h"
#include "schedule/turn.h"
#include "stage/correspond.h"
#include "stage/top_k.h"

namespace heddle::schedule {

namespace {

constexpr int kBlockThreads = 256;
constexpr int64_t kSubgroupRow = 2048;     // longer rows are a block's
constexpr int64_t kSubgroupsPerBlock = 4;  // that share the shared memory, at least
// Subgroups that a multiprocessor wants at hand to hide memory: a quarter of what it can hold.
constexpr int64_t kSubgroupsWanted = 16;
constexpr int64_t kShortMap = 1024;  // a last digit that leaves most of a block's lanes idle

// The longest reduction that runs along what its loads run along; 0: none.
int64_t longest_row(const StageGraph& graph) {
  int64_t longest = 0;
  for (const Stage& stage : graph.stages) {
    if (!stage.is_reduction()) continue;
    bool along = stage.loads.empty();
    for (const Load& load : stage.loads)
      for (size_t r = 0; r < stage.red.size() && !load.coordinates.empty(); ++r)
        along |= load.coordinates.back().factor_of(static_cast<int>(stage.out.size() + r)) == 1;
    if (along) longest = std::max(longest, stage.red_elems());
  }
  return longest;
}

// Threads of a task: those of a subgroup, or of a block.
int choose_lanes(const StageGraph& graph, const target::Target& target) {
  const bool reduces = std::any_of(graph.stages.begin(), graph.stages.end(),
                                   [](const Stage& stage) { return stage.is_reduction(); });
  if (reduces) return longest_row(graph) > kSubgroupRow ? kBlockThreads : target.warp_size;
  const target::Target view = view_of_threads(target, target.warp_size);
  if (match_turn(graph, graph.stages[0], view)) return target.warp_size;
  int64_t most = 0, last = 1;
  for (const Stage& stage : graph.stages) {
    if (stage.out_elems() <= most) continue;
    most = stage.out_elems();
    last = stage.out.empty() ? 1 : stage.out.back().extent;
  }
  return last < kShortMap ? target.warp_size : kBlockThreads;
}

bool is_output(const Stage& stage) {
  return std::any_of(stage.values.begin(), stage.values.end(),
                     [](const Value& value) { return value.output >= 0; });
}

// Evaluations beyond one an element.
double extra_work(const PlacedFusion& placed) {
  double extra = 0;
  for (size_t i = 0; i < placed.graph.stages.size(); ++i) {
    const Stage& stage = placed.graph.stages[i];
    extra += (placed.placement.stages[i].recompute - 1) * static_cast<double>(stage.out_elems()) *
             static_cast<double>(stage.red_elems());
  }
  return extra;
}

// Rows were laid out for what a task had before: their lanes and where values are kept must stay.
bool keeps_rows(const PlacedFusion& before, const PlacedFusion& after) {
  for (size_t i = 0; i < before.graph.stages.size(); ++i)
    if (before.placement.stages[i].space != after.placement.stages[i].space) return false;
  for (const ScheduleNode& node : before.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    if (!row || row->own.empty()) continue;
    for (size_t m = 0; m < row->joined.size(); ++m) {
      const size_t stage = row->joined[m].index();
      const int digit = row->own.back().digits[m];
      const index::Region& was = before.placement.stages[stage].need;
      if (digit < 0 || digit >= std::ssize(was)) continue;
      if (was[digit].extent != after.placement.stages[stage].need[digit].extent) return false;
    }
  }
  return true;
}

// The loop that cuts a task at digit `digit` of the largest output into strips of `by`, around all
// that the tasks do; nothing: some output has no such digit, or a list would be computed in pieces.
std::optional<PlacedFusion> cut_tasks(const PlacedFusion& placed, size_t anchor, int digit,
                                      int64_t by, const target::Target& view) {
  const StageGraph& graph = placed.graph;
  const std::vector<int> same = corresponding_digits(graph, anchor, digit);
  if (divides_list(graph, same)) return std::nullopt;
  Loop loop{"strip", LoopKind::parallel, graph.stages[anchor].out[digit].extent / by, {}, {}};
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (!is_output(graph.stages[i])) continue;
    if (same[i] < 0) return std::nullopt;
    loop.drives.push_back({StageId(i), same[i], by});
  }
  PlacedFusion cut = placed;
  Group& group = cut.schedule.phases[0][0];
  loop.body = group.body;
  group.body = {static_cast<int>(cut.schedule.nodes.size())};
  cut.schedule.nodes.emplace_back(std::move(loop));
  cut.placement = place_values(cut.graph, cut.schedule, view);
  cut.decision = cut.placement.decision;
  const auto most = static_cast<double>(graph.stages[anchor].out_elems()) / 8;
  if (!cut.decision || !keeps_rows(placed, cut) || extra_work(cut) - extra_work(placed) > most)
    return std::nullopt;
  return cut;
}

// A GPU wants more tasks than a CPU has use for: where there are few, loops inside of them become
// tasks too, in the longest strips that give enough, as long as little is computed twice.
void cut_few_tasks(PlacedFusion* placed, const target::Target& target, const target::Target& view) {
  if (placed->schedule.phases.size() != 1 || placed->schedule.phases[0].size() != 1) return;
  const StageGraph& graph = placed->graph;
  const int lanes = placed->schedule.phases[0][0].lanes;
  const int64_t wanted =
      target.multiprocessors * kSubgroupsWanted * target.warp_size / std::max(1, lanes);
  size_t anchor = 0;
  for (size_t i = 0; i < graph.stages.size(); ++i)
    if (is_output(graph.stages[i]) &&
        (!is_output(graph.stages[anchor]) ||
         graph.stages[i].out_elems() >= graph.stages[anchor].out_elems()))
      anchor = i;
  int64_t tasks = 1;
  std::vector<bool> taken(graph.stages[anchor].out.size(), false);
  for (const ScheduleNode& node : placed->schedule.nodes) {
    if (const Loop* loop = std::get_if<Loop>(&node)) {
      tasks *= loop->trips;
      for (const Drive& drive : loop->drives)
        if (drive.stage.index() == anchor && drive.digit < std::ssize(taken))
          taken[drive.digit] = true;
      continue;
    }
    const Row& row = std::get<Row>(node);  // lanes stay
    for (size_t m = 0; m < row.joined.size() && !row.own.empty(); ++m)
      if (row.joined[m].index() == anchor && row.own.back().digits[m] >= 0 &&
          row.own.back().digits[m] < std::ssize(taken))
        taken[row.own.back().digits[m]] = true;
  }
  for (size_t d = 0; d < taken.size() && tasks < wanted; ++d) {
    const int64_t extent = graph.stages[anchor].out[d].extent;
    if (taken[d] || extent == 1) continue;
    for (int64_t trips = std::min(extent, (wanted + tasks - 1) / tasks); trips > 1; --trips) {
      if (extent % trips != 0) continue;
      std::optional<PlacedFusion> cut =
          cut_tasks(*placed, anchor, static_cast<int>(d), extent / trips, view);
      if (!cut) continue;
      *placed = std::move(*cut);
      tasks *= trips;
      break;
    }
  }
}

void map_kinds(Schedule* schedule, LoopKind task, LoopKind parallel, LoopKind lanes,
               LoopKind vector) {
  for (ScheduleNode& node : schedule->nodes) {
    if (Loop* loop = std::get_if<Loop>(&node)) {
      if (loop->kind == task) loop->kind = parallel;
      continue;
    }
    for (Own& own : std::get<Row>(node).own)
      if (own.kind == lanes) own.kind = vector;
  }
}

}  // namespace

target::Target view_of_threads(const target::Target& target, int lanes) {
  target::Target view = target;
  view.simd_bits = 32 * lanes;
  view.cores = target.multiprocessors;
  const int64_t sharing = lanes > target.warp_size ? 1 : kSubgroupsPerBlock;
  view.caches.resize(2);
  // place_values fills half of the second cache.
  view.caches[1].bytes = 2 * target.shared_bytes_per_block / sharing;
  return view;
}

Schedule without_threads(const Schedule& schedule) {
  Schedule plain = schedule;
  map_kinds(&plain, LoopKind::block, LoopKind::parallel, LoopKind::thread, LoopKind::vector);
  map_kinds(&plain, LoopKind::subgroup, LoopKind::parallel, LoopKind::thread, LoopKind::vector);
  return plain;
}

namespace {

PlacedFusion place_threads(StageGraph graph, const target::Target& target) {
  const int first = choose_lanes(graph, target);
  PlacedFusion placed = place_rows(graph, view_of_threads(target, first));
  if (!placed.decision && placed.decision.code() == "space-full" && first != kBlockThreads) {
    // What four subgroups cannot hold side by side, a block may hold alone.
    PlacedFusion wide = place_rows(std::move(graph), view_of_threads(target, kBlockThreads));
    if (wide.decision) placed = std::move(wide);
  }
  if (!placed.decision) return placed;
  const int lanes = placed.schedule.phases[0][0].lanes;
  cut_few_tasks(&placed, target, view_of_threads(target, lanes));
  map_kinds(&placed.schedule, LoopKind::parallel,
            lanes > target.warp_size ? LoopKind::block : LoopKind::subgroup, LoopKind::vector,
            LoopKind::thread);
  placed.schedule.target = target.name;
  return placed;
}

}  // namespace

bool gpu_rows_applies(const Problem& problem, const PlacedFusion&) {
  return problem.target.kind == target::DeviceKind::gpu;
}

// Rows in lanes, each with its list in registers, are what threads do without each other.
PlacedFusion place_gpu_rows(const Problem& problem) {
  StageGraph graph = problem.graph;
  const bool lists = has_top_k(graph);
  if (!lists) flatten_digits(&graph);
  PlacedFusion placed = place_threads(std::move(graph), problem.target);
  if (!placed.decision || !lists) return placed;
  for (const ScheduleNode& node : placed.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    if (!row || !is_top_k(placed.graph.stage(row->joined[0])) || !row->own.empty()) continue;
    placed.decision = Decision::no("top-k", "{} is a list that threads would share",
                                   placed.graph.stage(row->joined[0]).name);
  }
  return placed;
}

}  // namespace heddle::schedule
