#include "schedule/turn.h"

#include <algorithm>

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kLeastElems = 512;   // below that a gather is as good
constexpr int64_t kTaskElems = 32768;  // per task, about: its output stays in the second cache
constexpr int64_t kLeastSquares = 4;   // of a task along the longer digit, for long runs in memory
constexpr int64_t kFewTasks = 8;
// Least elements of the output's contiguous run: with fewer than the lanes, most lanes do nothing,
// but whole lines are read (4 batches of 200x40x256 to channels first: 76 ms by gathers, 6 ms this
// way; 3 channels: 40 and 17).
constexpr int64_t kLeastAcross = 2;

// Bytes and halves are transposed as the low bits of 32-bit lanes.
bool turns_widened(Type type, const target::Target& target) {
  const bool small = type == Type::bf16 || type == Type::f16 || type == Type::s8 ||
                     type == Type::u8 || type == Type::s16 || type == Type::u16;
  return small && target.kind == target::DeviceKind::cpu;
}

// A digit that x contains once, with factor 1; -1: none.
int unit_digit(const Expr& x, const Stage& stage) {
  for (size_t d = 0; d < stage.out.size(); ++d) {
    const int digit = static_cast<int>(d);
    if (stage.out[d].extent > 1 && x.factor_of(digit) == 1 && !(x - Expr::digit(digit)).uses(digit))
      return digit;
  }
  return -1;
}

// The longest strip of whole squares, at most `most` (or the shortest one), that divides the extent
// evenly; the whole extent if there is none.
int64_t equal_strip(int64_t extent, int64_t lanes, int64_t most) {
  int64_t strip = 0;
  for (int64_t by = lanes; by < extent; by += lanes)
    if (extent % by == 0 && (strip == 0 || by <= most)) strip = by;
  return strip == 0 || extent <= most ? extent : strip;
}

}  // namespace

std::optional<Turn> match_turn(const StageGraph& graph, const Stage& stage,
                               const target::Target& target) {
  const int lanes = target.lanes(Type::f32);
  if (stage.is_reduction() || stage.kind != hlo::StageKind::map ||
      stage.out_elems() < kLeastElems || lanes < 4)
    return std::nullopt;
  Turn form;
  form.across = unit_digit(stage.position, stage);
  if (form.across < 0 || stage.out[static_cast<size_t>(form.across)].extent < kLeastAcross)
    return std::nullopt;
  for (size_t i = 0; i < stage.loads.size(); ++i) {
    const Load& load = stage.loads[i];
    if (load.source.input < 0 || !load.guards.empty()) continue;
    const Type type = graph.inputs[static_cast<size_t>(load.source.input)].shape.type();
    const bool whole = type == Type::f32 || type == Type::s32 || type == Type::u32;
    if (!whole && !turns_widened(type, target)) continue;
    const Expr& x = load.coordinates[0];
    const int64_t factor = x.factor_of(form.across);
    if (!x.is_affine() || x.uses_runtime() || factor == 0 || factor == 1) continue;
    const int along = unit_digit(x, stage);
    if (along < 0 || along == form.across ||
        stage.out[static_cast<size_t>(along)].extent < lanes / 2)
      continue;
    form.along = along;
    form.load = static_cast<int>(i);
    return form;
  }
  return std::nullopt;
}

PlacedFusion place_turn(StageGraph graph, const Turn& form, const target::Target& target) {
  const Stage& stage = graph.stages[0];
  const int lanes = target.lanes(Type::f32);
  Schedule schedule;
  schedule.name = graph.name;
  schedule.target = target.name;
  Row row{{StageId(0)}, {}, form};
  row.own.push_back({LoopKind::unrolled, {form.along}, lanes});
  row.own.push_back({LoopKind::vector, {form.across}, lanes});
  std::vector<int> body{0};
  schedule.nodes.emplace_back(std::move(row));
  auto around = [&](int digit, int64_t by) {
    Loop loop;
    loop.var = fmt::format("t{}", digit);
    loop.kind = LoopKind::parallel;
    loop.trips = stage.out[static_cast<size_t>(digit)].extent / by;
    loop.drives.push_back({StageId(0), digit, by});
    loop.body = std::move(body);
    body = {static_cast<int>(schedule.nodes.size())};
    schedule.nodes.emplace_back(std::move(loop));
  };
  // A task covers a long part of the longer digit, for few long runs in memory, and all of the
  // other one, unless that leaves too few tasks.
  const bool longer_along = stage.out[static_cast<size_t>(form.along)].extent >=
                            stage.out[static_cast<size_t>(form.across)].extent;
  const int longer = longer_along ? form.along : form.across;
  const int other = longer_along ? form.across : form.along;
  const int64_t length = stage.out[static_cast<size_t>(longer)].extent;
  const int64_t width = stage.out[static_cast<size_t>(other)].extent;
  const int64_t run =
      equal_strip(length, lanes, std::max(kTaskElems / width, kLeastSquares * lanes));
  const int64_t tasks = stage.out_elems() / (run * width);
  const int64_t part =
      tasks >= kFewTasks ? width : equal_strip(width, lanes, width * tasks / kFewTasks);
  if (part < width) around(other, part);
  if (run < length) around(longer, run);
  for (size_t d = stage.out.size(); d-- > 0;)
    if (static_cast<int>(d) != form.along && static_cast<int>(d) != form.across &&
        stage.out[d].extent > 1)
      around(static_cast<int>(d), 1);
  schedule.phases.push_back({Group{body, lanes}});
  PlacedFusion result;
  result.placement = place_values(graph, schedule, target);
  result.decision = result.placement.decision;
  result.graph = std::move(graph);
  result.schedule = std::move(schedule);
  return result;
}

}  // namespace heddle::schedule
