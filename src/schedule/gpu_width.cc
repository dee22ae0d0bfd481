#include "schedule/gpu_width.h"

#include <algorithm>

#include "stage/node_digits.h"
#include "stage/top_k.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kAccessBytes = 16;  // of one lane's access, at most

class Widener {
 public:
  explicit Widener(const PlacedFusion& placed) : placed_(placed) {}

  // The widest that a row allows.
  struct Width {
    int most = static_cast<int>(kAccessBytes);
    bool wanted = false;  // it reads or stores contiguous elements
  };
  Width of(const Row& row, int lanes) {
    if (row.own.empty()) return {};
    const Own& own = row.own.back();
    if (own.kind != LoopKind::vector && own.kind != LoopKind::thread) return {};
    if (row.turn() || row.is_tile()) return {1};
    for (const Own& one : row.own)
      if (one.kind == LoopKind::unrolled) return {1};
    bytes_ = 1;
    unit_ = false;
    int width = static_cast<int>(kAccessBytes);
    for (size_t m = 0; m < row.joined.size(); ++m) {
      const Stage& stage = placed_.graph.stage(row.joined[m]);
      if (is_top_k(stage) || stage.scan >= 0 || stage.scatter >= 0 || own.digits[m] < 0) return {1};
      while (width > 1 && !allows(row.joined[m].index(), own.digits[m], width)) width /= 2;
    }
    width = std::min(width, static_cast<int>(kAccessBytes / bytes_));
    const int64_t extent = extent_in_task(placed_, row.joined[0], own.digits[0]);
    while (width > 1 && unit_ && 4 * extent < 3 * int64_t{lanes} * width) width /= 2;
    return {std::max(width, 1), unit_};
  }

 private:
  template <typename F>
  void each_drive(size_t number, int digit, const F& found) const {
    for (int node : placed_.placement.stages[number].path) {
      const auto& loop = std::get<Loop>(placed_.schedule.nodes[static_cast<size_t>(node)]);
      for (const Drive& drive : loop.drives)
        if (drive.stage.index() == number && drive.digit == digit) found(drive.by);
    }
  }

  bool allows(size_t number, int digit, int width) {
    const Stage& stage = placed_.graph.stages[number];
    const Placed& place = placed_.placement.stages[number];
    if (extent_in_task(placed_, StageId(number), digit) % width != 0 ||
        stage.extents()[static_cast<size_t>(digit)] % width != 0)
      return false;
    bool divides = true;
    each_drive(number, digit, [&](int64_t by) { divides &= by % width == 0; });
    if (digit < static_cast<int>(stage.out.size()))
      divides &= is_multiple(place.need[static_cast<size_t>(digit)].offset, -1, width);
    if (!divides) return false;
    const stage::NodeDigits nodes = stage::node_digits(stage);
    for (const Load& load : stage.loads) {
      for (const index::Guard& guard : load.guards)
        if (guard.value.uses(digit)) return false;
      if (load.source.input < 0 &&
          placed_.placement.stages[load.source.stage.index()].space != stage::Space::global)
        continue;  // private to a lane, or in scratch
      if (load.source.input < 0) {
        for (size_t d = 0; d < load.coordinates.size(); ++d)
          if (!is_side_by_side(load.coordinates[d], digit, nodes, width,
                               d + 1 == load.coordinates.size()))
            return false;
        const Stage& source = placed_.graph.stage(load.source.stage);
        count(tensor::type_bytes(source.values[static_cast<size_t>(load.source.value)].type),
              load.coordinates.empty() ? Expr(0) : load.coordinates.back(), digit);
        continue;
      }
      if (!is_side_by_side(load.coordinates[0], digit, nodes, width, true)) return false;
      const Type type = placed_.graph.inputs[static_cast<size_t>(load.source.input)].shape.type();
      count(tensor::type_bytes(type), load.coordinates[0], digit);
    }
    for (const Node& node : stage.nodes)
      for (const index::Guard& guard : node.guards)
        if (guard.value.uses(digit)) return false;
    for (const Value& value : stage.values) {
      if (stage.is_reduction()) continue;
      if (value.output >= 0 && !is_side_by_side(stage.position, digit, nodes, width, true))
        return false;
      if (value.output >= 0) count(tensor::type_bytes(value.type), stage.position, digit);
    }
    return true;
  }

  void count(int64_t bytes, const Expr& at, int digit) {
    if (!at.uses(digit)) return;
    bytes_ = std::max(bytes_, bytes);
    unit_ = true;
  }

  static bool is_multiple(const Expr& x, int but, int width) {
    if (x.constant() % width != 0) return false;
    return std::ranges::all_of(x.terms(), [&](const index::Term& term) {
      return term.factor % width == 0 ||
             (term.atom.kind == index::Atom::Kind::digit && term.atom.id == but);
    });
  }

  // Whether the index is the same for all lanes, or grows by one from lane to lane and is aligned.
  static bool is_side_by_side(const Expr& x, int digit, const stage::NodeDigits& nodes, int width,
                              bool last) {
    if (stage::moves_unseen(x, digit, nodes)) return false;
    if (!x.uses(digit)) return true;
    return last && x.factor_of(digit) == 1 && !(x - Expr::digit(digit)).uses(digit) &&
           is_multiple(x, digit, width);
  }

  const PlacedFusion& placed_;
  int64_t bytes_ = 1;  // of the widest element that the row reads or stores
  bool unit_ = false;  // some access is contiguous
};

void find_rows(const Schedule& schedule, int number, std::vector<int>* rows) {
  const ScheduleNode& node = schedule.nodes[static_cast<size_t>(number)];
  if (const Loop* loop = std::get_if<Loop>(&node))
    for (int inner : loop->body) find_rows(schedule, inner, rows);
  else
    rows->push_back(number);
}

}  // namespace

bool widen_rows(PlacedFusion* placed) {
  Widener widener(*placed);
  bool changed = false;
  std::vector<std::pair<int, int>> widths;
  for (const auto& phase : placed->schedule.phases) {
    for (const Group& group : phase) {
      std::vector<int> rows;
      for (int node : group.body) find_rows(placed->schedule, node, &rows);
      Widener::Width all;
      std::vector<Widener::Width> each;
      for (int number : rows) {
        const Widener::Width one = widener.of(
            std::get<Row>(placed->schedule.nodes[static_cast<size_t>(number)]), group.lanes);
        all.wanted |= one.wanted;
        if (one.wanted) all.most = std::min(all.most, one.most);
        each.push_back(one);
      }
      // Rows of values in scratch get the same width where they can, so that the values are private
      // to a thread.
      for (size_t i = 0; i < rows.size(); ++i) {
        const bool can = all.wanted && each[i].most >= all.most;
        widths.emplace_back(rows[i], can ? all.most : 1);
      }
    }
  }
  for (const auto& [number, width] : widths) {
    Row& row = std::get<Row>(placed->schedule.nodes[static_cast<size_t>(number)]);
    if (width < 2 || row.own.empty()) continue;
    Own& own = row.own.back();
    if (own.kind != LoopKind::vector && own.kind != LoopKind::thread) continue;
    own.by = int64_t{placed->schedule.phases[0][0].lanes} * width;
    row.width = width;
    changed = true;
  }
  return changed;
}

}  // namespace heddle::schedule
