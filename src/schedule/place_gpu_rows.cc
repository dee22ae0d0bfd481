#include "schedule/place_gpu_rows.h"

#include <algorithm>
#include <optional>
#include <set>

#include "cost/latency.h"
#include "cost/rates.h"
#include "schedule/gpu_width.h"
#include "schedule/phases.h"
#include "schedule/place_rows.h"
#include "schedule/strategy.h"
#include "stage/correspond.h"
#include "stage/top_k.h"

namespace heddle::schedule {

namespace {

constexpr int64_t kSubgroupsPerBlock = 4;  // that share a block's shared memory, at least
// Resident subgroups that a multiprocessor needs to hide memory latency: a quarter of its capacity.
constexpr int64_t kSubgroupsWanted = 16;

bool is_output(const Stage& stage) {
  return std::any_of(stage.values.begin(), stage.values.end(),
                     [](const Value& value) { return value.output >= 0; });
}

// Evaluations beyond one per element.
double extra_work(const PlacedFusion& placed) {
  double extra = 0;
  for (size_t i = 0; i < placed.graph.stages.size(); ++i) {
    const Stage& stage = placed.graph.stages[i];
    extra += (placed.placement.stages[i].recompute - 1) * static_cast<double>(stage.out_elems()) *
             static_cast<double>(stage.red_elems());
  }
  return extra;
}

// Rows were built for the tasks as they were: extents along the lanes and spaces of values must not
// change.
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

// Cuts the tasks of one group further.
class TaskCutter {
 public:
  TaskCutter(PlacedFusion* placed, size_t phase, size_t group, const target::Target& view)
      : placed_(*placed), phase_(phase), group_(group), view_(view) {
    for (int node : placed_.schedule.phases[phase][group].body) find(node);
  }

  // A GPU needs more tasks than a CPU: if there are few, loops inside tasks become tasks too, in
  // the longest strips that give enough tasks, as long as little is computed twice.
  void run(int64_t wanted) {
    if (stages_.empty()) return;
    for (size_t i : stages_)
      if (stores(i) && (anchor_ < 0 || elems(i) >= elems(anchor_))) anchor_ = static_cast<int>(i);
    if (anchor_ < 0) return;
    const std::vector<Digit> digits = placed_.graph.stages[anchor_].out;
    for (size_t d = 0; d < digits.size() && tasks_ < wanted; ++d) {
      const int64_t extent = placed_.placement.stages[anchor_].need[d].extent;
      if (taken_.contains({anchor_, static_cast<int>(d)}) || extent == 1 ||
          extent != digits[d].extent)
        continue;
      for (int64_t trips = std::min(extent, (wanted + tasks_ - 1) / tasks_); trips > 1; --trips) {
        if (extent % trips != 0) continue;
        if (squares_.contains({anchor_, static_cast<int>(d)}) &&
            extent / trips % placed_.schedule.phases[phase_][group_].lanes != 0)
          continue;
        std::optional<PlacedFusion> cut = cut_at(static_cast<int>(d), extent / trips);
        if (!cut) continue;
        placed_ = std::move(*cut);
        tasks_ *= trips;
        break;
      }
    }
  }

 private:
  void find(int number) {
    const ScheduleNode& node = placed_.schedule.nodes[static_cast<size_t>(number)];
    if (const Loop* loop = std::get_if<Loop>(&node)) {
      if (loop->kind == LoopKind::parallel) tasks_ *= loop->trips;
      for (const Drive& drive : loop->drives)
        taken_.emplace(static_cast<int>(drive.stage.index()), drive.digit);
      for (int inner : loop->body) find(inner);
      return;
    }
    const Row& row = std::get<Row>(node);  // digits of lanes are not cut
    for (size_t m = 0; m < row.joined.size(); ++m) {
      stages_.push_back(row.joined[m].index());
      if (row.turn())
        for (const Own& own : row.own)
          squares_.emplace(static_cast<int>(row.joined[m].index()), own.digits[m]);
      if (!row.own.empty())
        taken_.emplace(static_cast<int>(row.joined[m].index()), row.own.back().digits[m]);
    }
  }

  bool stores(size_t stage) const {
    return is_output(placed_.graph.stages[stage]) ||
           placed_.placement.stages[stage].space == stage::Space::global;
  }
  int64_t elems(size_t stage) const { return placed_.graph.stages[stage].out_elems(); }

  // Wraps the group's body in a loop over strips of `by` along digit `digit` of the largest output;
  // nullopt if an output has no such digit, a list would be divided, or too much would be computed
  // twice.
  std::optional<PlacedFusion> cut_at(int digit, int64_t by) const {
    const StageGraph& graph = placed_.graph;
    const std::vector<int> same = corresponding_digits(graph, static_cast<size_t>(anchor_), digit);
    if (divides_list(graph, same)) return std::nullopt;
    Loop loop{fmt::format("strip{}", placed_.schedule.nodes.size()),
              LoopKind::parallel,
              graph.stages[static_cast<size_t>(anchor_)].out[digit].extent / by,
              {},
              {}};
    for (size_t i : stages_) {
      if (!stores(i)) continue;
      if (same[i] < 0 || taken_.contains({static_cast<int>(i), same[i]})) return std::nullopt;
      loop.drives.push_back({StageId(i), same[i], by});
    }
    PlacedFusion cut = placed_;
    Group& group = cut.schedule.phases[phase_][group_];
    loop.body = group.body;
    group.body = {static_cast<int>(cut.schedule.nodes.size())};
    cut.schedule.nodes.emplace_back(std::move(loop));
    cut.placement = place_values(cut.graph, cut.schedule, view_);
    cut.decision = cut.placement.decision;
    const double most = static_cast<double>(elems(static_cast<size_t>(anchor_))) / 8;
    if (!cut.decision || !keeps_rows(placed_, cut) || extra_work(cut) - extra_work(placed_) > most)
      return std::nullopt;
    return cut;
  }

  PlacedFusion& placed_;
  const size_t phase_, group_;
  const target::Target& view_;
  std::vector<size_t> stages_;             // of the group
  std::set<std::pair<int, int>> squares_;  // stages and digits that are cut in whole squares
  std::set<std::pair<int, int>> taken_;    // stages and digits that tasks or lanes run along
  int64_t tasks_ = 1;
  int anchor_ = -1;
};

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

constexpr int kLaneCounts[] = {32, 128, 256, 512, 1024};
constexpr int kCascades = 4;
constexpr int kWide = 4, kMostThreads = 1024;
// Extra price of kernels with few warps: by occupancy, and by the total number of threads.
constexpr double kFewWarps = 0.4, kIdleThreads = 0.1;
// Extra price of single-element accesses where wider ones are possible, beyond the modelled cost.
constexpr double kNarrow = 1.05;
// A subgroup with fewer elements is hardly worth starting.
constexpr int64_t kShortTask = 64;
// Phases are tried if the best so far takes this much longer than moving its bytes.
constexpr double kNearRoof = 1.3;

class GpuRows {
 public:
  explicit GpuRows(const Problem& problem) : problem_(problem), target_(problem.target) {}

  PlacedFusion run() {
    best_.decision = Decision::no("no-strategy", "no rows for threads");
    StageGraph graph = problem_.graph;
    if (has_top_k(graph)) {
      consider_rows(graph);
      return std::move(best_);
    }
    flatten_digits(&graph);
    std::vector<StageGraph> graphs{std::move(graph)};
    add_merged(&graphs);
    const bool product = problem_.product().has_value();
    if (!product) {
      for (stage::Repeat repeat : {stage::Repeat::cheap, stage::Repeat::all}) {
        StageGraph again = problem_.staged_again(repeat);
        if (again.stages.size() >= graphs.back().stages.size()) continue;
        flatten_digits(&again);
        graphs.push_back(std::move(again));
        add_merged(&graphs);
      }
    }
    for (const StageGraph& one : graphs) consider_rows(one);
    if (!product && problem_.has(hlo::StageKind::reduce) && !is_near_roof()) {
      for (const StageGraph& one : graphs) consider_cascade(one);
      for (const StageGraph& one : graphs) consider_phases(one);
    }
    return std::move(best_);
  }

 private:
  static void add_merged(std::vector<StageGraph>* graphs) {
    StageGraph merged = graphs->back();
    merge_digits(&merged);
    if (count_digits(merged) < count_digits(graphs->back())) graphs->push_back(std::move(merged));
  }

  static size_t count_digits(const StageGraph& graph) {
    size_t sum = 0;
    for (const Stage& stage : graph.stages) sum += stage.extents().size();
    return sum;
  }

  // Candidate numbers of threads per task: usual ones, and ones that cover a digit in one to four
  // accesses per thread. More threads than the longest digit has elements would idle.
  std::vector<int> lane_counts(const StageGraph& graph) const {
    std::set<int> counts{target_.warp_size};
    std::set<int64_t> extents;
    for (const Stage& stage : graph.stages) {
      const std::vector<int64_t> all = stage.extents();
      extents.insert(all.begin(), all.end());
    }
    if (extents.empty()) return {target_.warp_size};
    for (int lanes : kLaneCounts)
      if (2 * *extents.rbegin() > lanes) counts.insert(lanes);
    for (int64_t extent : extents) {
      for (int64_t steps = 1; steps <= 4; ++steps) {
        const int64_t threads = (extent + kWide * steps - 1) / (kWide * steps);
        const int64_t lanes =
            (threads + target_.warp_size - 1) / target_.warp_size * target_.warp_size;
        const bool full = 4 * threads >= 3 * lanes && extent % kWide == 0;
        if (full && lanes <= kMostThreads) counts.insert(static_cast<int>(lanes));
      }
    }
    return {counts.begin(), counts.end()};
  }

  bool is_near_roof() const {
    if (!best_.decision) return false;
    double ns = target_.launch_ns;
    const int all = target_.multiprocessors;
    for (const stage::Input& input : best_.graph.inputs)
      ns += cost::transfer_ns(cost::Transition::memory_reg,
                              static_cast<double>(input.shape.bytes()), all, target_);
    for (const Output& output : best_.graph.outputs)
      ns += cost::transfer_ns(cost::Transition::memory_reg,
                              static_cast<double>(best_.graph.stored_bytes(output)), all, target_);
    return least_ < kNearRoof * ns;
  }

  void consider_rows(const StageGraph& graph) {
    for (int lanes : lane_counts(graph)) {
      const target::Target view = view_of_threads(target_, lanes);
      consider(place_rows(graph, view), lanes);
      if (lanes > target_.warp_size || !has_short_rows()) continue;
      for (int64_t rows : {4, 8}) consider(place_rows(graph, view, {}, rows), lanes);
    }
  }

  // Whether a task of the best so far has little work.
  bool has_short_rows() const {
    if (!best_.decision) return false;
    const StageGraph& graph = best_.graph;
    const Stage& stage = graph.stages[largest_stage(graph)];
    const int64_t points = stage.out_elems() * stage.red_elems();
    return points < without_threads(best_.schedule).count_tasks() * kShortTask;
  }

  // Sums of exponentials of long rows in strips: rows are read from memory once.
  void consider_cascade(const StageGraph& graph) {
    for (int lanes : lane_counts(graph)) {
      const target::Target view = view_of_threads(target_, lanes);
      target::Target shared = view;  // shared by the strips of several tasks
      shared.caches[0].bytes /= kCascades;
      Cascade strips = cascade(graph, shared);
      if (!strips.striped.empty())
        consider(place_rows(std::move(strips.graph), view, std::move(strips.striped)), lanes);
    }
  }

  // One dimension in strips with partial results, and launches that combine these.
  void consider_phases(const StageGraph& graph) {
    const int64_t all = target_.multiprocessors;
    const size_t digits = graph.stages[largest_stage(graph)].extents().size();
    for (size_t d = 0; d < digits; ++d) {
      for (int lanes : lane_counts(graph)) {
        if (lanes > 256) continue;
        const target::Target view = view_of_threads(target_, lanes);
        for (int64_t parts : {all / 16, all, all * 4, all * 16}) {
          CutGraph cut = cut_graph(graph, view, {static_cast<int>(d), parts});
          if (!cut.decision || cut.phases.size() < 2) break;
          for (Heads heads : {Heads::rows, Heads::results})
            consider(place_cut(cut, view, heads), lanes);
        }
      }
    }
  }

  // Whether a row transposes squares, which only a single subgroup can.
  static bool turns(const PlacedFusion& placed) {
    return std::ranges::any_of(placed.schedule.nodes, [](const ScheduleNode& node) {
      const Row* row = std::get_if<Row>(&node);
      return row && row->turn();
    });
  }

  void consider(PlacedFusion placed, int lanes) {
    if (!placed.decision) {
      if (!best_.decision) best_.decision = placed.decision;
      return;
    }
    if (lanes != placed.schedule.phases[0][0].lanes || (lanes > target_.warp_size && turns(placed)))
      return;
    const target::Target view = view_of_threads(target_, lanes);
    const int64_t wanted = target_.multiprocessors * kSubgroupsWanted * target_.warp_size / lanes;
    for (size_t p = 0; p < placed.schedule.phases.size(); ++p)
      for (size_t g = 0; g < placed.schedule.phases[p].size(); ++g)
        TaskCutter(&placed, p, g, view).run(wanted);
    PlacedFusion wide = placed;
    const bool widened = !has_top_k(placed.graph) && widen_rows(&wide);
    if (widened) weigh(std::move(wide), lanes, 1);
    weigh(std::move(placed), lanes, widened ? kNarrow : 1);
  }

  void weigh(PlacedFusion placed, int lanes, double factor) {
    map_kinds(&placed.schedule, LoopKind::parallel,
              lanes > target_.warp_size ? LoopKind::block : LoopKind::subgroup, LoopKind::vector,
              LoopKind::thread);
    placed.schedule.target = target_.name;
    const cost::Latency cost = cost::latency(placed, target_);
    // With more warps, other waits matter less.
    double threads = 0;
    for (const cost::PhaseLatency& phase : cost.phases)
      threads = std::max(threads, phase.tasks * lanes);
    const double idle =
        std::max(0.0, 1 - threads / target_.multiprocessors / target_.threads_per_multiprocessor);
    const double price = cost.ns * factor * (1 + kIdleThreads * idle) *
                         (1 + kFewWarps * std::max(0.0, 0.5 - cost.occupancy));
    if (best_.decision && price >= least_) return;
    least_ = price;
    best_ = std::move(placed);
  }

  const Problem& problem_;
  const target::Target& target_;
  PlacedFusion best_;
  double least_ = 0;
};

}  // namespace

bool gpu_rows_applies(const Problem& problem, const PlacedFusion&) {
  return problem.target.kind == target::DeviceKind::gpu;
}

// In a top-k, threads are independent only if rows are in lanes, each with its list in registers.
PlacedFusion place_gpu_rows(const Problem& problem) {
  PlacedFusion placed = GpuRows(problem).run();
  if (!placed.decision || !has_top_k(problem.graph)) return placed;
  for (const ScheduleNode& node : placed.schedule.nodes) {
    const Row* row = std::get_if<Row>(&node);
    if (!row || row->joined.empty() || !is_top_k(placed.graph.stage(row->joined[0])) ||
        !row->own.empty())
      continue;
    placed.decision = Decision::no("top-k", "{} is a list that threads would share",
                                   placed.graph.stage(row->joined[0]).name);
  }
  return placed;
}

}  // namespace heddle::schedule
