// The schedule of a graph that is cut into strips, one task each: inside a task, the stages without
// the dimension, then a loop over the strip with the rows of the stages that have it.
#include <algorithm>
#include <optional>

#include "cost/few_tasks.h"
#include "schedule/lane_digit.h"
#include "schedule/phases.h"
#include "schedule/strategy.h"
#include "schedule/task_loops.h"
#include "stage/correspond.h"

namespace heddle::schedule {

using index::Expr;

namespace {

class PhasePlacer {
 public:
  PhasePlacer(CutGraph cut, const target::Target& target, Heads heads)
      : cut_(std::move(cut)), target_(target), lanes_(target.lanes(Type::f32)), heads_(heads) {}

  PlacedFusion run() {
    place();
    if (!result_.decision && sums_in_lanes_) {
      sums_in_lanes_ = false;
      no_sums_in_lanes_ = true;
      place();
    }
    result_.graph = std::move(cut_.graph);
    return std::move(result_);
  }

 private:
  void place() {
    target::Target roomy = target_;  // capacity is checked later, for the whole schedule
    if (roomy.caches.size() > 1) roomy.caches[1].bytes = INT64_MAX / 4;
    result_.schedule = build(nullptr);
    const Placement alone = place_values(cut_.graph, result_.schedule, roomy);
    result_.decision = alone.decision;
    if (result_.decision) {
      result_.schedule = build(&alone);
      result_.placement = place_values(cut_.graph, result_.schedule, target_);
      result_.decision = result_.placement.decision;
    }
  }

  const Stage& stage(StageId id) const { return cut_.graph.stage(id); }
  const Cut& cut(StageId id) const { return cut_.cuts[id.index()]; }

  // Builds the schedule; stages are joined into rows by their needs in `alone`, or get one row
  // each.
  Schedule build(const Placement* alone) {
    Schedule schedule;
    schedule.name = cut_.graph.name;
    schedule.target = target_.name;
    for (const auto& phase : cut_.phases) {
      schedule.phases.emplace_back();
      for (const CutGroup& group : phase)
        schedule.phases.back().push_back(group.strips ? strips(group, alone, &schedule)
                                                      : heads(group, alone, &schedule));
    }
    return schedule;
  }

  static int add(Schedule* schedule, ScheduleNode node) {
    schedule->nodes.push_back(std::move(node));
    return static_cast<int>(schedule->nodes.size() - 1);
  }

  std::vector<int> add_rows(const std::vector<StageId>& ids, const Placement* alone, bool swept,
                            Schedule* schedule) {
    std::vector<Row> rows;
    std::vector<std::vector<int64_t>> first;  // extents of each row's first stage
    for (StageId id : ids) {
      std::vector<int64_t> extents;
      std::vector<Own> own;
      size_t behind = 0;  // the last row that it reads
      if (alone) {
        for (const index::Interval& interval : alone->stages[id.index()].need)
          extents.push_back(interval.extent);
        for (const Digit& digit : stage(id).red) extents.push_back(digit.extent);
        const bool accumulates = swept && cut(id).kind == Cut::Kind::partial;
        if (accumulates) extents[static_cast<size_t>(cut(id).digit)] = 1;
        own = own_loops(id, extents, accumulates);
        for (size_t r = 0; r < rows.size(); ++r)
          if (reads_any(id, rows[r])) behind = r;
      }
      bool joined = false;
      for (size_t r = behind; r < rows.size() && alone && !joined; ++r)
        joined = join(&rows[r], first[r], id, own, extents, swept);
      if (joined) continue;
      rows.push_back({{id}, std::move(own), {}});
      first.push_back(std::move(extents));
    }
    std::vector<int> numbers;
    for (Row& row : rows) numbers.push_back(add(schedule, std::move(row)));
    return numbers;
  }

  bool reads_any(StageId reader, const Row& row) const {
    return std::any_of(
        stage(reader).loads.begin(), stage(reader).loads.end(), [&](const Load& load) {
          return load.source.input < 0 && std::find(row.joined.begin(), row.joined.end(),
                                                    load.source.stage) != row.joined.end();
        });
  }

  // Serial loops, then the lanes, preferably along a digit that is contiguous and fills them.
  std::vector<Own> own_loops(StageId id, const std::vector<int64_t>& extents,
                             bool accumulates) const {
    const Stage& from = stage(id);
    const auto out = static_cast<int>(from.out.size());
    std::vector<Own> own;
    std::vector<int> digits;
    for (int d = 0; d < static_cast<int>(extents.size()); ++d)
      if (extents[static_cast<size_t>(d)] > 1) digits.push_back(d);
    if (digits.empty()) return own;
    std::vector<int> candidates;
    for (int d : digits) {
      // A swept stage keeps its accumulators in memory, in the order of its result.
      if (accumulates && d >= out) continue;
      if (combines_in_lanes(id) && d < out) continue;
      candidates.push_back(d);
    }
    if (candidates.empty()) candidates.push_back(digits.back());
    const bool fixed = accumulates || combines_in_lanes(id) ||
                       (target_.kind != target::DeviceKind::cpu && from.is_reduction());
    const int lane = fixed ? natural_lane_digit(from, extents, candidates, lanes_)
                           : lane_digit(from, extents, candidates, lanes_);
    for (int d : digits)
      if (d != lane) own.push_back({LoopKind::serial, {d}, 1});
    const bool unrolls = from.is_reduction() && !accumulates &&
                         extents[static_cast<size_t>(lane)] >= 4 * int64_t{lanes_};
    own.push_back({LoopKind::vector, {lane}, int64_t{lanes_} * (unrolls ? 4 : 1)});
    return own;
  }

  // Joins the stage if its loops are equal and it reads the row's stages at the current point only.
  bool join(Row* row, const std::vector<int64_t>& first, StageId id, const std::vector<Own>& own,
            const std::vector<int64_t>& extents, bool swept) const {
    if (own.size() != row->own.size() || own.empty()) return false;
    for (size_t i = 0; i < own.size(); ++i)
      if (extents[static_cast<size_t>(own[i].digits[0])] !=
          first[static_cast<size_t>(row->own[i].digits[0])])
        return false;
    auto columns = [&](StageId one, int digit) {
      const bool accumulates = swept && cut(one).kind == Cut::Kind::partial;
      return !accumulates && stage(one).is_reduction() &&
             digit < static_cast<int>(stage(one).out.size());
    };
    if (columns(id, own.back().digits[0]) || columns(row->joined[0], row->own.back().digits[0]))
      return false;
    Row joined = *row;
    joined.joined.push_back(id);
    for (size_t i = 0; i < own.size(); ++i) {
      joined.own[i].digits.push_back(own[i].digits[0]);
      joined.own[i].by = std::max(joined.own[i].by, own[i].by);
    }
    const size_t newcomer = joined.joined.size() - 1;
    for (const Load& load : stage(id).loads) {
      if (load.source.input >= 0) continue;
      const auto found = std::find(row->joined.begin(), row->joined.end(), load.source.stage);
      if (found == row->joined.end()) continue;
      const auto position = static_cast<size_t>(found - row->joined.begin());
      if (stage(*found).is_reduction() ||
          !reads_current_point(cut_.graph, joined, newcomer, position))
        return false;
    }
    *row = std::move(joined);
    return true;
  }

  bool reads_along(StageId id, const CutGroup& group) const {
    return std::any_of(stage(id).loads.begin(), stage(id).loads.end(), [&](const Load& load) {
      return load.source.input < 0 && cut(load.source.stage).kind == Cut::Kind::along &&
             std::binary_search(
                 group.stages.begin(), group.stages.end(), load.source.stage,
                 [](StageId a, StageId b) { return a.index() < b.index(); });
    });
  }

  // Whether the stage is computed inside the loop over the strip: it has the dimension, or it
  // reduces the strip and reads a stage that has it or has its lanes along an out digit.
  bool sweeps(StageId id, const CutGroup& group) const {
    if (cut(id).kind == Cut::Kind::along) return true;
    if (cut(id).kind == Cut::Kind::whole) return false;
    if (reads_along(id, group)) return true;
    const Stage& from = stage(id);
    const auto out = static_cast<int>(from.out.size());
    int best = INT32_MIN, lane = 0;
    for (int d = 1; d < static_cast<int>(from.extents().size()); ++d) {
      const int score = contiguity(from, d);
      if (score < best) continue;
      best = score;
      lane = d;
    }
    return lane < out;
  }

  // Whether the stage is a map over the dimension alone, or a partial sum with one value per strip.
  bool has_strip_only(StageId id) const {
    const Stage& one = stage(id);
    if (cut(id).kind == Cut::Kind::along)
      return one.red.empty() &&
             one.out_elems() == one.out[static_cast<size_t>(cut(id).digit)].extent;
    return cut(id).kind == Cut::Kind::partial && one.out_elems() == cut_.strips.parts &&
           one.red.size() == 1;
  }

  Group strips(const CutGroup& group, const Placement* alone, Schedule* schedule) {
    std::vector<StageId> at_task, at_row;
    for (StageId id : group.stages) (sweeps(id, group) ? at_row : at_task).push_back(id);
    Loop task{fmt::format("t{}", schedule->phases.size() - 1),
              LoopKind::parallel,
              cut_.strips.parts,
              {},
              {}};
    for (StageId id : group.stages) {
      if (cut(id).kind == Cut::Kind::along)
        task.drives.push_back({id, cut(id).digit, cut_.strips.strip});
      if (cut(id).kind == Cut::Kind::partial) task.drives.push_back({id, 0, 1});
    }
    task.body = add_rows(at_task, alone, false, schedule);
    // The dimension (almost) alone: the lanes run along it.
    const bool narrow = std::all_of(at_row.begin(), at_row.end(), [&](StageId id) {
      return cut(id).kind == Cut::Kind::along && stage(id).red.empty() &&
             stage(id).out_elems() < cut_.strips.extent * 4;
    });
    const bool sums =
        !narrow && !no_sums_in_lanes_ &&
        std::all_of(at_row.begin(), at_row.end(), [&](StageId id) { return has_strip_only(id); });
    sums_in_lanes_ |= sums;
    if (narrow || sums) {
      for (int row : add_rows(at_row, alone, false, schedule)) task.body.push_back(row);
    } else {
      Loop rows{fmt::format("r{}", schedule->phases.size() - 1),
                LoopKind::serial,
                cut_.strips.strip,
                {},
                {}};
      for (StageId id : at_row) rows.drives.push_back({id, cut(id).digit, 1});
      rows.body = add_rows(at_row, alone, true, schedule);
      task.body.push_back(add(schedule, std::move(rows)));
    }
    return Group{{add(schedule, std::move(task))}, lanes_};
  }

  // Whether the stage combines partial results with its lanes along them.
  bool combines_in_lanes(StageId id) const {
    return heads_ == Heads::results && cut(id).kind == Cut::Kind::whole &&
           stage(id).is_reduction() && !stage(id).red.empty() &&
           stage(id).red[0].extent == cut_.strips.parts &&
           std::any_of(stage(id).loads.begin(), stage(id).loads.end(), [&](const Load& load) {
             return load.source.input < 0 && cut(load.source.stage).kind == Cut::Kind::partial;
           });
  }

  // Whether the value is stored in memory: it is an output, another group reads it, or nothing
  // does.
  bool is_kept(const CutGroup& group, StageId id) const {
    const auto inside = [&](size_t reader) {
      return std::find(group.stages.begin(), group.stages.end(), StageId(reader)) !=
             group.stages.end();
    };
    bool any = false, beyond = is_output(stage(id));
    for (size_t r = 0; r < cut_.graph.stages.size(); ++r)
      for (const Load& load : cut_.graph.stages[r].loads) {
        if (load.source.input >= 0 || load.source.stage != id) continue;
        any = true;
        beyond |= !inside(r);
      }
    return beyond || !any;
  }

  // Loops over the first `digits` digits of the anchor, outermost first; nullopt if a kept value
  // lacks one of them.
  std::optional<std::vector<Loop>> loops_over_results(const CutGroup& group, size_t anchor,
                                                      size_t digits, size_t phase) const {
    std::vector<Loop> loops;
    for (size_t d = 0; d < digits; ++d) {
      const std::vector<int> same = corresponding_digits(cut_.graph, anchor, static_cast<int>(d));
      Loop loop{fmt::format("t{}.{}", phase, d),
                LoopKind::parallel,
                cut_.graph.stages[anchor].out[d].extent,
                {},
                {}};
      for (StageId id : group.stages) {
        if (!is_kept(group, id)) continue;
        if (same[id.index()] < 0) return std::nullopt;
        loop.drives.push_back({id, same[id.index()], 1});
      }
      loops.push_back(std::move(loop));
    }
    return loops;
  }

  // Loops over results as `heads_` says, then strips of the last digit if all stages have it;
  // without loops, one task.
  Group heads(const CutGroup& group, const Placement* alone, Schedule* schedule) {
    size_t anchor = group.stages[0].index();
    for (StageId id : group.stages)
      if (stage(id).out_elems() >= cut_.graph.stages[anchor].out_elems()) anchor = id.index();
    const std::vector<Digit>& out = cut_.graph.stages[anchor].out;
    const size_t phase = schedule->phases.size() - 1;
    std::vector<Loop> loops;
    if (heads_ != Heads::strips && !out.empty())
      loops = loops_over_results(group, anchor,
                                 heads_ == Heads::results ? out.size() : out.size() - 1, phase)
                  .value_or(std::vector<Loop>());
    if (loops.size() < out.size())
      if (std::optional<Loop> strips = strips_of_last(group, anchor, phase))
        loops.push_back(std::move(*strips));
    std::vector<int> body = add_rows(group.stages, alone, false, schedule);
    for (size_t i = loops.size(); i-- > 0;) {
      loops[i].body = std::move(body);
      body = {add(schedule, std::move(loops[i]))};
    }
    return Group{std::move(body), lanes_};
  }

  std::optional<Loop> strips_of_last(const CutGroup& group, size_t anchor, size_t phase) const {
    const Stage& largest = cut_.graph.stages[anchor];
    const int64_t by = 4 * int64_t{lanes_};
    if (largest.out.empty() || largest.out.back().extent <= by) return std::nullopt;
    const int digit = static_cast<int>(largest.out.size()) - 1;
    const std::vector<int> same = corresponding_digits(cut_.graph, anchor, digit);
    Loop task{fmt::format("t{}", phase),
              LoopKind::parallel,
              (largest.out.back().extent + by - 1) / by,
              {},
              {}};
    for (StageId id : group.stages) {
      const int d = same[id.index()];
      if (d < 0 || d + 1 != static_cast<int>(stage(id).out.size())) return std::nullopt;
      task.drives.push_back({id, d, by});
    }
    return task;
  }

  CutGraph cut_;
  const target::Target& target_;
  const int lanes_;
  const Heads heads_;
  PlacedFusion result_;
  // Whether a group's strip values and their sums are rows of its task; and whether that was tried
  // and did not fit, so that they are computed element by element.
  bool sums_in_lanes_ = false, no_sums_in_lanes_ = false;
};

}  // namespace

PlacedFusion place_cut(CutGraph cut, const target::Target& target, Heads heads) {
  return PhasePlacer(std::move(cut), target, heads).run();
}

bool phases_applies(const Problem& problem, const PlacedFusion& best) {
  return may_be_rows(problem) && (!best.decision || problem.leaves_idle) &&
         problem.has(hlo::StageKind::reduce);
}

// Cheap values are recomputed in each phase instead of stored between phases.
PlacedFusion place_phases(const Problem& problem) {
  StageGraph graph = problem.staged_again();
  merge_digits(&graph);
  PlacedFusion result;
  CutGraph cut = cut_graph(graph, problem.target);
  result.decision = cut.decision;
  if (result.decision && cut.phases.size() < 2)
    result.decision = Decision::no("one-phase", "nothing is reduced along what is cut");
  return result.decision ? place_cut(std::move(cut), problem.target) : result;
}

bool has_few_tasks(const PlacedFusion& placed, const target::Target& target) {
  int64_t tasks = 1, elems = 0;
  for (const ScheduleNode& node : placed.schedule.nodes)
    if (const auto* loop = std::get_if<Loop>(&node)) tasks *= loop->trips;
  bool reduces = false;
  for (const Stage& stage : placed.graph.stages) {
    elems = std::max(elems, stage.out_elems() * stage.red_elems());
    reduces |= stage.is_reduction();
  }
  return reduces && placed.graph.stages.size() > 1 && cost::leaves_cores_idle(tasks, elems, target);
}

}  // namespace heddle::schedule
