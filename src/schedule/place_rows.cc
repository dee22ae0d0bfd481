// Row schedules: tasks over the digits that no reduction crosses, rows of joined stages inside.
#include "schedule/place_rows.h"

#include <algorithm>
#include <set>

#include "schedule/lane_digit.h"
#include "schedule/phases.h"
#include "schedule/task_loops.h"
#include "schedule/turn.h"
#include "schedule/windows.h"
#include "stage/correspond.h"
#include "stage/top_k.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kTurnedVectors = 16, kLeastStrip = 4;  // vectors: of a transposed digit; a strip

class RowPlacer {
 public:
  RowPlacer(StageGraph graph, Striped striped, int64_t rows, const target::Target& target)
      : target_(target), striped_(std::move(striped)), rows_(rows) {
    result_.graph = std::move(graph);
  }

  PlacedFusion run() {
    StageGraph& graph = result_.graph;
    anchor_ = choose_anchor(graph);
    int64_t tasks = choose_tasks();
    for (TaskDigit& task : tasks_)
      if (task.by == 1) task.by = top_k_rows(graph, anchor_, task.digit, target_);
    if (!tasks_.empty() && tasks_.back().by == 1 &&
        graph.stages[anchor_].out[tasks_.back().digit].extent % rows_ == 0)
      tasks_.back().by = rows_;
    if (needs_split(tasks)) return split();
    lanes_ = target_.lanes(Type::f32);
    std::vector<Row> rows = join_rows();
    if (!result_.decision) return std::move(result_);
    result_.schedule =
        build_schedule(graph, anchor_, tasks_, std::move(rows), striped_, lanes_, target_);
    finish();
    return std::move(result_);
  }

 private:
  int64_t choose_tasks() {
    const Stage& anchor = result_.graph.stages[anchor_];
    const auto [lane, column] = window_digits();
    const int turned = turned_digit();
    int64_t count = 1;
    for (int d = 0; d < static_cast<int>(anchor.out.size()); ++d) {
      if (d == lane || d == column || d == wide_lane(anchor)) continue;
      const int64_t by = d == turned ? turned_strip(anchor, d) : 1;
      if (by == 0 || !may_be_task(result_.graph, anchor_, tasks_, d, striped_, target_)) continue;
      tasks_.push_back({d, by});
      count *= anchor.out[d].extent / by;
    }
    if (lane >= 0) return share_lanes(lane, count);
    // A map's stores need the last digit for the lanes, whatever other digits remain.
    const bool strided = !anchor.is_reduction() && !tasks_.empty() &&
                         tasks_.back().digit == static_cast<int>(anchor.out.size()) - 1;
    if (tasks_.size() == anchor.out.size() || strided) leave_lanes(&count);
    return count;
  }

  // For a map whose last digit does not fill the lanes (upsampling by two, for example): the digit
  // before it if that fills them, so that it stays in the task; -1: none.
  static int wide_lane(const Stage& map) {
    const auto last = static_cast<int>(map.out.size()) - 1;
    if (map.is_reduction() || last < 1 || map.out[last].extent >= 4) return -1;
    return map.out[last - 1].extent >= 4 * map.out[last].extent ? last - 1 : -1;
  }

  // The anchor's digits that are lanes and columns of a window: they stay in a task.
  std::pair<int, int> window_digits() const {
    for (size_t i = 0; i < result_.graph.stages.size(); ++i) {
      const std::optional<WindowForm> form = match_window(result_.graph.stages[i], target_);
      if (!form) continue;
      const int lane = corresponding_digits(result_.graph, i, form->lane)[anchor_];
      const int column = corresponding_digits(result_.graph, i, form->column)[anchor_];
      if (lane >= 0 && column >= 0) return {lane, column};
    }
    return {-1, -1};
  }

  // The anchor's digit along which a map after a reduction reads, while its output is contiguous
  // along another: it stays in a task, which transposes squares (stages.md §4.5); -1: none.
  int turned_digit() const {
    const StageGraph& graph = result_.graph;
    for (size_t i = 0; i < graph.stages.size(); ++i) {
      if (!is_output(graph.stages[i])) continue;
      const std::optional<Turn> form = match_turn(graph, graph.stages[i], target_);
      if (!form) continue;
      // Only if a reduction gains too, by reading along it.
      const std::vector<int> same = corresponding_digits(graph, i, form->along);
      for (size_t other = 0; other < graph.stages.size(); ++other)
        if (graph.stages[other].is_reduction() && same[other] >= 0 &&
            contiguity(graph.stages[other], same[other]) > 0)
          return same[anchor_];
    }
    return -1;
  }

  // The strip of a transposed digit: as many whole vectors as two thirds of the first cache hold
  // with the transposed values, on a GPU one; 0: the whole digit, because it is short or no such
  // strip divides it.
  int64_t turned_strip(const Stage& anchor, int digit) const {
    const int64_t extent = anchor.out[digit].extent, vector = target_.lanes(Type::f32);
    if (target_.caches.empty() || extent < kTurnedVectors * vector) return 0;
    const bool gpu = target_.kind == target::DeviceKind::gpu;  // needs tasks more than long runs
    const int64_t most = target_.caches[0].bytes * 2 / 3 / (4 * anchor.out.back().extent);
    const int64_t longest = gpu ? vector : most / vector * vector;
    for (int64_t by = longest; by >= (gpu ? 1 : kLeastStrip) * vector; by -= vector)
      if (extent % by == 0) return by;
    return 0;
  }

  // Small images have fewer rows than there are cores: the lanes' digit is cut into equal strips of
  // whole vectors.
  int64_t share_lanes(int lane, int64_t count) {
    const int64_t extent = result_.graph.stages[anchor_].out[lane].extent;
    const int64_t lanes = target_.lanes(Type::f32);
    const int64_t wanted = (4 * target_.cores + count - 1) / count;
    for (int64_t parts = std::min(wanted, extent / lanes); parts > 1; --parts) {
      if (extent % parts != 0 || extent / parts % lanes != 0) continue;
      if (!may_be_task(result_.graph, anchor_, tasks_, lane, striped_, target_)) break;
      tasks_.push_back({lane, extent / parts});
      return count * parts;
    }
    return count;
  }

  // Whether the heaviest stage is a long reduction with its lanes along a reduced digit: one task
  // per result.
  bool reduces_along_lanes() const {
    const Stage* heaviest = nullptr;
    for (const Stage& stage : result_.graph.stages)
      if (!heaviest ||
          stage.out_elems() * stage.red_elems() > heaviest->out_elems() * heaviest->red_elems())
        heaviest = &stage;
    if (heaviest->red_elems() < 16 * lanes_) return false;
    return contiguous_digit(*heaviest) >= static_cast<int>(heaviest->out.size());
  }

  // Every digit of the anchor is a task digit: one of them is needed for the lanes, whole or in
  // strips. For maps that is the last one (stores are contiguous); for a reduction over rows the
  // digit along which its loads are contiguous, if any.
  void leave_lanes(int64_t* count) {
    const Stage& anchor = result_.graph.stages[anchor_];
    if (has_top_k(result_.graph)) return;  // whole rows, as many as top_k_rows says
    if (anchor.out.empty() || (!anchor.is_reduction() && reduces_along_lanes())) return;
    int lane_digit = static_cast<int>(anchor.out.size()) - 1;
    if (anchor.is_reduction()) {
      lane_digit = contiguous_digit(anchor);
      if (lane_digit >= 0 && target_.kind == target::DeviceKind::cpu)
        lane_digit = filling_digit(anchor, anchor.extents(), lane_digit);
      if (lane_digit < 0 || lane_digit >= static_cast<int>(anchor.out.size())) return;
      if (result_.graph.stages.size() > 1) return;
    }
    auto task = std::find_if(tasks_.begin(), tasks_.end(),
                             [&](const TaskDigit& t) { return t.digit == lane_digit; });
    int64_t extent = anchor.out[lane_digit].extent;
    int64_t others = *count / std::max<int64_t>(extent, 1);
    // Strips of about 16 KB for maps (one access of all threads on a GPU); four vectors for
    // reductions over rows.
    const bool gpu = target_.kind == target::DeviceKind::gpu;
    int64_t lanes = target_.lanes(Type::f32);
    int64_t strip = anchor.is_reduction() || gpu ? lanes * 4 : 4096;
    // Sums with their lanes along this digit need an accumulator per vector: 16 at most.
    const std::vector<int> same = corresponding_digits(result_.graph, anchor_, lane_digit);
    for (size_t i = 0; i < same.size(); ++i) {
      const Stage& stage = result_.graph.stages[i];
      if (stage.is_reduction() && same[i] >= 0 && same[i] == contiguous_digit(stage))
        strip = std::min(strip, lanes * 16);
    }
    // The mask of the lanes cuts the last strip short: a serial loop would run past the end.
    if (anchor.is_reduction() && extent > strip) {
      lanes_ = target_.lanes(Type::f32);
      std::vector<int64_t> extents(anchor.out.size(), 1);
      extents[static_cast<size_t>(lane_digit)] = strip;
      for (const Digit& digit : anchor.red) extents.push_back(digit.extent);
      const std::vector<Own> own = row_of(result_.graph, StageId(anchor_), extents).own;
      if (own.empty() || own.back().digits[0] != lane_digit) return;
    }
    if (extent <= strip ||
        (!gpu && others >= target_.cores * 8 && extent <= 4 * 4096 && !anchor.is_reduction())) {
      tasks_.erase(task);
      *count = others;
      return;
    }
    task->by = strip;
    *count = others * ((extent + strip - 1) / strip);
  }

  bool needs_split(int64_t tasks) const {
    const StageGraph& graph = result_.graph;
    const Stage& anchor = graph.stages[anchor_];
    if (graph.stages.size() != 1 || anchor.kind != hlo::StageKind::reduce || anchor.red.empty())
      return false;
    if (tasks >= 8 || anchor.out_elems() * anchor.red_elems() < 131072) return false;
    if (best_parts(anchor) < 2 || !anchor.instr->is(hlo::Opcode::reduce)) return false;
    return starts_neutral(anchor);
  }

  static int64_t best_parts(const Stage& stage) {
    int64_t parts = 1;
    for (int64_t p = 2; p <= 64; ++p)
      if (stage.red[0].extent % p == 0) parts = p;
    return parts;
  }

  // Two phases: partial results per task, then their combination (stages.md §2, split reductions).
  PlacedFusion split() {
    StageGraph graph =
        split_reduction(result_.graph, StageId(anchor_), best_parts(result_.graph.stages[anchor_]));
    lanes_ = target_.lanes(Type::f32);
    Schedule schedule;
    schedule.name = graph.name;
    schedule.target = target_.name;
    for (size_t i = 0; i < 2; ++i) {
      Row row = row_of(graph, StageId(i), whole(graph.stages[i]));
      std::vector<int> body{static_cast<int>(schedule.nodes.size())};
      // The partial's lanes may run along an out digit: then it keeps that digit's loop.
      std::set<int> owned;
      for (const Own& own : row.own) owned.insert(own.digits[0]);
      std::vector<Own> inside;
      for (const Own& own : row.own)
        if (own.digits[0] >= static_cast<int>(graph.stages[i].out.size()) ||
            own.kind == LoopKind::vector)
          inside.push_back(own);
      row.own = inside;
      schedule.nodes.emplace_back(row);
      for (size_t d = graph.stages[i].out.size(); d-- > 0;) {
        bool kept = std::any_of(inside.begin(), inside.end(), [&](const Own& own) {
          return own.digits[0] == static_cast<int>(d);
        });
        if (kept) continue;
        Loop loop{fmt::format("t{}", d),
                  LoopKind::parallel,
                  graph.stages[i].out[d].extent,
                  {{StageId(i), static_cast<int>(d), 1}},
                  body};
        body = {static_cast<int>(schedule.nodes.size())};
        schedule.nodes.emplace_back(loop);
      }
      schedule.phases.push_back({Group{body, lanes_}});
    }
    result_.graph = std::move(graph);
    result_.schedule = std::move(schedule);
    finish();
    return std::move(result_);
  }

  static std::vector<int64_t> whole(const Stage& stage) { return stage.extents(); }

  // A row of one stage, with loops over the digits that have more than one element in `extents`:
  // serial ones, then the lanes.
  Row row_of(const StageGraph& graph, StageId id, const std::vector<int64_t>& extents) const {
    Row row{{id}, {}, {}};
    row.own = own_loops(graph.stage(id), extents, &row.kind);
    return row;
  }

  std::vector<Own> own_loops(const Stage& stage, const std::vector<int64_t>& extents,
                             RowKind* kind) const {
    std::vector<int> digits;
    for (size_t d = 0; d < extents.size(); ++d)
      if (extents[d] > 1) digits.push_back(static_cast<int>(d));
    std::vector<Own> own;
    if (is_top_k(stage)) return top_k_loops(stage, extents, lanes_);
    if (digits.empty()) return own;
    if (window_loops(stage, extents, &own, kind) || turned_loops(stage, extents, &own, kind))
      return own;
    // On GPUs measured for maps only.
    const int lane = target_.kind == target::DeviceKind::cpu || !stage.is_reduction()
                         ? lane_digit(stage, extents, digits, lanes_)
                         : natural_lane_digit(stage, extents, digits, lanes_);
    for (int d : digits)
      if (d != lane && d != stage.scan) own.push_back({LoopKind::serial, {d}, 1});
    if (stage.scan >= 0 && stage.scan != lane) own.push_back({LoopKind::serial, {stage.scan}, 1});
    bool accumulates = stage.is_reduction();
    int unroll = accumulates && extents[lane] >= 4 * lanes_ ? 4 : 1;
    // Short, but repeated by serial loops: a single chain of sums would be bound by its latency.
    if (accumulates && unroll == 1 && own.size() > 1 && extents[lane] == 2 * lanes_) unroll = 2;
    own.push_back({LoopKind::vector, {lane}, int64_t{lanes_} * unroll});
    return own;
  }

  // Squares over the two digits, if the task iterates over no others and has all of its share of
  // them: squares are not cut at the end of a digit.
  bool turned_loops(const Stage& stage, const std::vector<int64_t>& extents, std::vector<Own>* own,
                    RowKind* kind) const {
    const std::optional<Turn> form = match_turn(result_.graph, stage, target_);
    if (!form) return false;
    for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
      const bool square = d == form->along || d == form->across;
      if (square ? extents[d] < lanes_ / 2 : extents[d] > 1) return false;
      if (square && stage.out[d].extent % extents[d] != 0) return false;
    }
    own->push_back({LoopKind::unrolled, {form->along}, lanes_});
    own->push_back({LoopKind::vector, {form->across}, lanes_});
    *kind = *form;
    return true;
  }

  // Loops, outermost first: rows of the image, blocks of columns, rows of the window, its columns,
  // lanes.
  bool window_loops(const Stage& stage, const std::vector<int64_t>& extents, std::vector<Own>* own,
                    RowKind* kind) const {
    const std::optional<WindowForm> form = match_window(stage, target_);
    if (!form || extents[form->column] != stage.out[form->column].extent) return false;
    if (stage.out[form->lane].extent % extents[form->lane] != 0) return false;
    const int out = static_cast<int>(stage.out.size());
    for (int d = 0; d < out; ++d)
      if (d != form->lane && d != form->column && extents[d] > 1)
        own->push_back({LoopKind::serial, {d}, 1});
    own->push_back({LoopKind::unrolled, {form->column}, form->columns});
    for (int row : form->rows) own->push_back({LoopKind::serial, {row}, 1});
    for (int digit : form->inputs)
      own->push_back(
          {LoopKind::unrolled, {digit}, form->steps(digit, extents[static_cast<size_t>(digit)])});
    if (form->across >= 0)
      own->push_back({LoopKind::unrolled, {form->across}, extents[form->across]});
    own->push_back({LoopKind::vector, {form->lane}, lanes_});
    *kind = Nest{form->mma};
    return true;
  }

  static bool is_window(const Row& row) {
    return std::any_of(row.own.begin(), row.own.end(),
                       [](const Own& own) { return own.kind == LoopKind::unrolled; });
  }

  // Joins a map that reads the window's results element by element: it runs after the reduced
  // loops.
  bool try_join_window(Row* row, StageId stage, const std::vector<int64_t>& extents) {
    const Stage& map = result_.graph.stage(stage);
    const StageId window = row->joined[0];
    if (map.is_reduction() || !result_.graph.stage(window).is_reduction()) return false;
    const int out = static_cast<int>(result_.graph.stage(window).out.size());
    Row joined = *row;
    joined.joined.push_back(stage);
    int64_t elems = 1, looped = 1;
    for (int64_t extent : extents) elems *= extent;
    for (Own& own : joined.own) {
      int digit = -1;
      if (own.digits[0] < out) {
        digit = corresponding_digits(result_.graph, window.index(), own.digits[0])[stage.index()];
        if (digit < 0 || extents[digit] != row_extents_.back()[own.digits[0]]) return false;
        looped *= extents[digit];
      }
      own.digits.push_back(digit);
    }
    if (looped != elems || !reads_joined(joined)) return false;
    *row = std::move(joined);
    return true;
  }

  // Whether the row's last stage reads the others at the current point only.
  bool reads_joined(const Row& row) const {
    const size_t newcomer = row.joined.size() - 1;
    for (const Load& load : result_.graph.stage(row.joined[newcomer]).loads) {
      if (load.source.input >= 0) continue;
      const auto found = std::find(row.joined.begin(), row.joined.end(), load.source.stage);
      const auto position = static_cast<size_t>(found - row.joined.begin());
      if (position < newcomer && !reads_current_point(result_.graph, row, newcomer, position))
        return false;
    }
    return true;
  }

  std::vector<Row> join_rows() {
    StageGraph& graph = result_.graph;
    // The needs inside a task decide what is left to iterate.
    Schedule alone =
        build_schedule(graph, anchor_, tasks_, one_row_a_stage(graph), striped_, lanes_, target_);
    Placement placement = place_values(graph, alone, target_);
    if (!placement.decision) {
      result_.decision = placement.decision;
      return {};
    }
    std::vector<Row> rows;
    for (size_t i = 0; i < graph.stages.size(); ++i) {
      std::vector<int64_t> extents;
      for (const index::Interval& interval : placement.stages[i].need)
        extents.push_back(interval.extent);
      for (const Digit& digit : graph.stages[i].red) extents.push_back(digit.extent);
      Row row = row_of(graph, StageId(i), extents);
      if (rows.empty() || !try_join(&rows.back(), StageId(i), row.own, extents))
        rows.push_back(std::move(row));
      row_extents_.resize(rows.size());
      if (rows.back().joined.size() == 1) row_extents_.back() = extents;
    }
    return rows;
  }

  // Scans of a row must run in one direction, and cannot share it with reductions, whose
  // accumulators need other lanes.
  bool may_join_scan(const Row& row, StageId stage) const {
    int up = 0, down = 0, reductions = 0;
    auto count = [&](const Stage& one) {
      reductions += one.is_reduction();
      if (one.scan >= 0) ++(one.down ? down : up);
    };
    for (StageId id : row.joined) count(result_.graph.stage(id));
    count(result_.graph.stage(stage));
    return (up == 0 || down == 0) && (up + down == 0 || reductions == 0);
  }

  // Joins the stage if its loops are equal and it reads the row's stages at the current point only.
  bool try_join(Row* row, StageId stage, const std::vector<Own>& own,
                const std::vector<int64_t>& extents) {
    if (is_window(*row)) return try_join_window(row, stage, extents);
    if (is_striped(striped_, stage) != is_striped(striped_, row->joined[0])) return false;
    if (!may_join_scan(*row, stage)) return false;
    if (own.size() != row->own.size() || own.empty()) return false;
    const std::vector<int64_t>& first = row_extents_.back();
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].kind != row->own[i].kind ||
          extents[own[i].digits[0]] != first[row->own[i].digits[0]])
        return false;
    }
    // A reduction whose lanes run along an out digit has a different loop nest.
    auto lanes_on_out = [&](StageId id, int digit) {
      const Stage& s = result_.graph.stage(id);
      return s.is_reduction() && digit < static_cast<int>(s.out.size());
    };
    if (lanes_on_out(stage, own.back().digits[0]) ||
        lanes_on_out(row->joined[0], row->own.back().digits[0]))
      return false;
    Row joined = *row;
    joined.joined.push_back(stage);
    for (size_t i = 0; i < own.size(); ++i) {
      joined.own[i].digits.push_back(own[i].digits[0]);
      joined.own[i].by = std::max(joined.own[i].by, own[i].by);
    }
    size_t newcomer = joined.joined.size() - 1;
    for (const Load& load : result_.graph.stage(stage).loads) {
      if (load.source.input >= 0) continue;
      auto found = std::find(row->joined.begin(), row->joined.end(), load.source.stage);
      if (found == row->joined.end()) continue;
      size_t position = static_cast<size_t>(found - row->joined.begin());
      if (!reads_current_point(result_.graph, joined, newcomer, position)) return false;
      if (result_.graph.stage(*found).is_reduction()) return false;
    }
    *row = std::move(joined);
    return true;
  }

  void finish() {
    result_.placement = place_values(result_.graph, result_.schedule, target_);
    result_.decision = result_.placement.decision;
  }

  const target::Target& target_;
  const Striped striped_;
  const int64_t rows_;  // of a task
  PlacedFusion result_;
  size_t anchor_ = 0;
  int lanes_ = 16;
  std::vector<TaskDigit> tasks_;
  std::vector<std::vector<int64_t>> row_extents_;
};

}  // namespace

PlacedFusion place_rows(StageGraph graph, const target::Target& target, Striped striped,
                        int64_t rows) {
  if (graph.stages.size() == 1)
    if (std::optional<Turn> turn = match_turn(graph, graph.stages[0], target))
      return place_turn(std::move(graph), *turn, target);
  return RowPlacer(std::move(graph), std::move(striped), rows, target).run();
}

}  // namespace heddle::schedule
