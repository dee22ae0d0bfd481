#include "schedule/task_loops.h"

#include <algorithm>
#include <optional>

#include "stage/correspond.h"
#include "stage/footprint.h"
#include "stage/top_k.h"

namespace heddle::schedule {

namespace {

// A target with unlimited scratch: capacity is checked later, for the whole schedule.
const target::Target& roomy() {
  static const target::Target roomy = [] {
    target::Target target;
    target.caches.resize(2);
    target.caches[1].bytes = INT64_MAX / 4;
    return target;
  }();
  return roomy;
}

// Adds the rows; striped rows get a loop over their strips.
std::vector<int> add_rows(const StageGraph& graph, std::vector<Row> rows, const Striped& striped,
                          Schedule* schedule) {
  std::vector<int> body;
  std::optional<Loop> strips;
  auto add = [&](ScheduleNode node) {
    schedule->nodes.push_back(std::move(node));
    return static_cast<int>(schedule->nodes.size() - 1);
  };
  auto close = [&] {
    if (strips) body.push_back(add(std::move(*strips)));
    strips.reset();
  };
  for (Row& row : rows) {
    const StageId first = row.joined[0];
    if (!is_striped(striped, first)) {
      close();
      body.push_back(add(std::move(row)));
      continue;
    }
    const int64_t parts = graph.stage(first).out[0].extent;
    if (strips && strips->trips != parts) close();
    if (!strips) strips = Loop{fmt::format("s{}", first.index()), LoopKind::serial, parts, {}, {}};
    for (StageId stage : row.joined) strips->drives.push_back({stage, 0, 1});
    strips->body.push_back(add(std::move(row)));
  }
  close();
  return body;
}

}  // namespace

bool is_output(const Stage& stage) {
  return std::any_of(stage.values.begin(), stage.values.end(),
                     [](const Value& value) { return value.output >= 0; });
}

size_t choose_anchor(const StageGraph& graph) {
  size_t anchor = graph.stages.size() - 1;
  int64_t most = -1;
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (!is_output(graph.stages[i]) || graph.stages[i].out_elems() < most) continue;
    anchor = i;
    most = graph.stages[i].out_elems();
  }
  return anchor;
}

bool is_striped(const Striped& striped, StageId stage) {
  return std::find(striped.begin(), striped.end(), stage) != striped.end();
}

Schedule build_schedule(const StageGraph& graph, size_t anchor, const std::vector<TaskDigit>& tasks,
                        std::vector<Row> rows, const Striped& striped, int lanes,
                        const target::Target& target) {
  Schedule schedule;
  schedule.name = graph.name;
  schedule.target = target.name;
  std::vector<int> body = add_rows(graph, std::move(rows), striped, &schedule);
  for (size_t t = tasks.size(); t-- > 0;) {
    const Digit& digit = graph.stages[anchor].out[tasks[t].digit];
    Loop loop;
    loop.var = fmt::format("t{}", t);
    loop.kind = LoopKind::parallel;
    loop.trips = (digit.extent + tasks[t].by - 1) / tasks[t].by;
    std::vector<int> same = corresponding_digits(graph, anchor, tasks[t].digit);
    for (size_t i = 0; i < graph.stages.size(); ++i)
      if ((is_output(graph.stages[i]) || is_striped(striped, StageId(i))) && same[i] >= 0)
        loop.drives.push_back({StageId(i), same[i], tasks[t].by});
    loop.body = std::move(body);
    body = {static_cast<int>(schedule.nodes.size())};
    schedule.nodes.emplace_back(std::move(loop));
  }
  schedule.phases.push_back({Group{body, lanes}});
  return schedule;
}

std::vector<Row> one_row_a_stage(const StageGraph& graph) {
  std::vector<Row> rows;
  for (size_t i = 0; i < graph.stages.size(); ++i) rows.push_back({{StageId(i)}, {}, {}});
  return rows;
}

bool may_be_task(const StageGraph& graph, size_t anchor, std::vector<TaskDigit> tasks, int digit,
                 const Striped& striped, const target::Target& target) {
  std::vector<int> same = corresponding_digits(graph, anchor, digit);
  for (size_t i = 0; i < graph.stages.size(); ++i)
    if (is_output(graph.stages[i]) && same[i] < 0) return false;
  if (divides_list(graph, same)) return false;
  tasks.push_back({digit, 1});
  Schedule schedule =
      build_schedule(graph, anchor, tasks, one_row_a_stage(graph), striped, 1, target);
  Placement placement = place_values(graph, schedule, roomy());
  if (!placement.decision) return false;
  double extra = 0;
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Stage& stage = graph.stages[i];
    const int list = is_top_k(stage) ? list_digit(stage) : -1;
    if (list >= 0 && !placement.stages[i].need[list].offset.is_constant()) return false;
    extra += (placement.stages[i].recompute - 1) * static_cast<double>(stage.out_elems()) *
             static_cast<double>(stage.red_elems());
  }
  return extra <= static_cast<double>(graph.stages[anchor].out_elems()) / 8;
}

}  // namespace heddle::schedule
