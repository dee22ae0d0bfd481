// Schedules as text: the grammar of stages.md §6 (without places, which are derived), with a gemm
// record where a dot has one.
#include "stage/schedule.h"

#include "stage/records.h"

namespace heddle::stage {

int64_t Schedule::count_tasks() const {
  int64_t tasks = 1;
  for (const ScheduleNode& node : nodes)
    if (const auto* loop = std::get_if<Loop>(&node); loop && loop->kind == LoopKind::parallel)
      tasks *= loop->trips;
  return tasks;
}

std::string_view loop_kind_name(LoopKind kind) {
  static constexpr std::string_view kNames[] = {"serial",   "unrolled", "vector",  "thread",
                                                "subgroup", "block",    "parallel"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view space_name(Space space) {
  static constexpr std::string_view kNames[] = {"reg", "fragment", "scratch", "global"};
  return kNames[static_cast<size_t>(space)];
}

namespace {

const std::string& digit_name(const Stage& stage, int digit) {
  size_t d = static_cast<size_t>(digit);
  return d < stage.out.size() ? stage.out[d].name : stage.red.at(d - stage.out.size()).name;
}

std::string by_text(int64_t by) { return by == 1 ? "" : fmt::format("/{}", by); }

class Printer {
 public:
  Printer(const Schedule& schedule, const StageGraph& graph) : schedule_(schedule), graph_(graph) {}

  std::string print() {
    text_ = fmt::format("schedule {} on {}\n", schedule_.name, schedule_.target);
    for (const auto& phase : schedule_.phases) {
      text_ += "phase {\n";
      for (const Group& group : phase) {
        text_ += fmt::format("  group lanes {} {{\n", group.lanes);
        for (int node : group.body) print_node(node, 4);
        text_ += "  }\n";
      }
      text_ += "}\n";
    }
    return std::move(text_);
  }

 private:
  void print_node(int number, int indent) {
    const ScheduleNode& node = schedule_.nodes.at(number);
    if (const Row* row = std::get_if<Row>(&node)) return print_row(*row, indent);
    const Loop& loop = std::get<Loop>(node);
    text_ += fmt::format("{:{}}for {} {}", "", indent, loop.var, loop_kind_name(loop.kind));
    const char* separator = " ";
    for (const Drive& drive : loop.drives) {
      const Stage& stage = graph_.stage(drive.stage);
      text_ += fmt::format("{}{}.{}{}", separator, stage.name, digit_name(stage, drive.digit),
                           by_text(drive.by));
      separator = ", ";
    }
    text_ += " {\n";
    for (int child : loop.body) print_node(child, indent + 2);
    text_ += fmt::format("{:{}}}}\n", "", indent);
  }

  void print_row(const Row& row, int indent) {
    text_ += fmt::format("{:{}}", "", indent);
    for (size_t i = 0; i < row.joined.size(); ++i)
      text_ += fmt::format("{}{}", i ? " & " : "", graph_.stage(row.joined[i]).name);
    if (const GemmTile* tile = row.gemm()) text_ += " : " + to_string(tile->record);
    if (const WinogradTile* tile = row.winograd()) text_ += " : " + to_string(tile->record);
    for (size_t i = 0; i < row.own.size(); ++i) {
      const Own& own = row.own[i];
      text_ += fmt::format("{}{} ", i ? " " : " : ", loop_kind_name(own.kind));
      for (size_t d = 0; d < own.digits.size(); ++d)
        text_ += fmt::format(
            "{}{}", d ? "," : "",
            own.digits[d] < 0 ? "-" : digit_name(graph_.stage(row.joined[d]), own.digits[d]));
      text_ += by_text(own.by);
    }
    if (row.width > 1) text_ += fmt::format(" width {}", row.width);
    if (const Nest* nest = row.nest(); nest && nest->mma->is_dot())
      text_ += fmt::format(" mma {}", nest->mma->name);
    text_ += ";\n";
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  std::string text_;
};

}  // namespace

std::string to_string(const Schedule& schedule, const StageGraph& graph) {
  return Printer(schedule, graph).print();
}

}  // namespace heddle::stage
