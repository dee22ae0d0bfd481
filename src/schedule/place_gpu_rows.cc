#include "schedule/place_gpu_rows.h"

#include <algorithm>

#include "schedule/place_rows.h"
#include "schedule/turn.h"

namespace heddle::schedule {

namespace {

constexpr int kBlockThreads = 256;
constexpr int64_t kSubgroupRow = 2048;     // longer rows are a block's
constexpr int64_t kSubgroupsPerBlock = 4;  // that share the shared memory, at least
constexpr int64_t kShortMap = 1024;        // a last digit that leaves most of a block's lanes idle

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

PlacedFusion place_gpu_rows(StageGraph graph, const target::Target& target) {
  const int first = choose_lanes(graph, target);
  PlacedFusion placed = place_rows(graph, view_of_threads(target, first));
  if (!placed.decision && placed.decision.code() == "space-full" && first != kBlockThreads) {
    // What four subgroups cannot hold side by side, a block may hold alone.
    PlacedFusion wide = place_rows(std::move(graph), view_of_threads(target, kBlockThreads));
    if (wide.decision) placed = std::move(wide);
  }
  if (!placed.decision) return placed;
  const int lanes = placed.schedule.phases[0][0].lanes;
  map_kinds(&placed.schedule, LoopKind::parallel,
            lanes > target.warp_size ? LoopKind::block : LoopKind::subgroup, LoopKind::vector,
            LoopKind::thread);
  placed.schedule.target = target.name;
  return placed;
}

}  // namespace heddle::schedule
