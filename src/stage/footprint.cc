#include "stage/footprint.h"

#include <algorithm>
#include <unordered_map>

#include "arena/offsets.h"
#include "base/check.h"
#include "stage/evaluations.h"

namespace heddle::stage {

using index::Expr;
using index::Interval;
using index::Region;

namespace {

class Inference {
 public:
  Inference(const StageGraph& graph, const Schedule& schedule, const target::Target& target)
      : graph_(graph),
        schedule_(schedule),
        most_scratch_(scratch_limit(target)),
        shares_(target.kind == target::DeviceKind::cpu) {
    placement_.stages.resize(graph.stages.size());
    placement_.extents.assign(schedule.nodes.size(), 1);
    spans_.resize(schedule.nodes.size());
    known_.resize(graph.stages.size());
    for (size_t i = 0; i < graph.stages.size(); ++i) {
      known_[i].extents = graph.stages[i].extents();
      known_[i].out_extents = graph.stages[i].out_extents();
      for (const Load& load : graph.stages[i].loads)
        if (load.source.input < 0) known_[load.source.stage.index()].reads.emplace_back(i, &load);
    }
    for (size_t number = 0; number < schedule.nodes.size(); ++number)
      if (const Loop* loop = std::get_if<Loop>(&schedule.nodes[number]))
        for (const Drive& drive : loop->drives)
          known_[drive.stage.index()].drives.emplace_back(static_cast<int>(number), &drive);
  }

  Placement run() {
    for (size_t phase = 0; phase < schedule_.phases.size(); ++phase)
      for (const Group& group : schedule_.phases[phase])
        for (int node : group.body) {
          std::vector<int> path;
          visit(node, static_cast<int>(phase), &path);
        }
    // Readers follow their producers: the last stage first.
    for (size_t i = graph_.stages.size(); i-- > 0 && placement_.decision;) infer(i);
    if (placement_.decision) choose_spaces();
    return std::move(placement_);
  }

 private:
  // Facts that do not change while needs are inferred.
  struct Known {
    std::vector<int64_t> extents, out_extents;
    std::vector<std::pair<size_t, const Load*>> reads;  // readers and their loads, in order
    std::vector<std::pair<int, const Drive*>> drives;   // loops and their drives
  };

  void visit(int number, int phase, std::vector<int>* path) {
    spans_[static_cast<size_t>(number)].first = steps_++;
    visit_below(number, phase, path);
    spans_[static_cast<size_t>(number)].second = steps_++;
  }

  void visit_below(int number, int phase, std::vector<int>* path) {
    const ScheduleNode& node = schedule_.nodes.at(number);
    if (const Loop* loop = std::get_if<Loop>(&node)) {
      placement_.extents[number] = loop->trips;
      path->push_back(number);
      for (int child : loop->body) visit(child, phase, path);
      path->pop_back();
      return;
    }
    for (StageId stage : std::get<Row>(node).joined) {
      Placed& placed = placement_.stages[stage.index()];
      placed.phase = phase;
      placed.path = *path;
      placed.row = number;
    }
    order_.emplace(number, order_.size());
  }

  bool stored(size_t stage) const {
    return std::any_of(graph_.stages[stage].values.begin(), graph_.stages[stage].values.end(),
                       [](const Value& value) { return value.output >= 0; });
  }

  // The part of a digit that the loops around the stage drive. Returns whether any drives it.
  bool driven(size_t stage, int digit, int64_t extent, Interval* interval) const {
    bool any = false;
    *interval = {Expr(0), extent};
    for (const auto& [loop, drive] : known_[stage].drives) {
      if (drive->digit != digit || !is_inside(stage, loop)) continue;
      interval->offset = interval->offset + Expr::digit(loop) * drive->by;
      interval->extent = std::min(drive->by, interval->extent);
      any = true;
    }
    return any;
  }

  bool is_inside(size_t stage, int loop) const {
    const std::vector<int>& path = placement_.stages[stage].path;
    return std::find(path.begin(), path.end(), loop) != path.end();
  }

  bool is_driven(size_t stage) const {
    return std::any_of(known_[stage].drives.begin(), known_[stage].drives.end(),
                       [&](const auto& drive) { return is_inside(stage, drive.first); });
  }

  // The region that the stage iterates over, out digits then red ones.
  Region iterated(size_t number) const {
    const Stage& stage = graph_.stages[number];
    Region region = placement_.stages[number].need;
    for (size_t r = 0; r < stage.red.size(); ++r) {
      Interval interval;
      driven(number, static_cast<int>(stage.out.size() + r), stage.red[r].extent, &interval);
      region.push_back(interval);
    }
    return region;
  }

  void infer(size_t number) {
    const Stage& stage = graph_.stages[number];
    Placed& placed = placement_.stages[number];
    if (placed.row < 0) {
      placement_.decision = Decision::no("missing", "{} has no place", stage.name);
      return;
    }
    bool found = false;
    Region need;
    const std::vector<int64_t>& box = known_[number].out_extents;
    bool any_driven = false;
    Region part(stage.out.size());
    for (size_t d = 0; d < stage.out.size(); ++d)
      any_driven |= driven(number, static_cast<int>(d), stage.out[d].extent, &part[d]);
    if (stored(number) || any_driven) {
      need = part;
      found = true;
    }
    for (const auto& [reader, load] : known_[number].reads) {
      Region read = read_region(number, reader, *load);
      if (!placement_.decision) return;
      need = found ? index::hull(need, read, placement_.extents, box, &placed.widened) : read;
      found = true;
    }
    if (!found) {
      placement_.decision = Decision::no("missing", "nothing reads {}", stage.name);
      return;
    }
    // Every element of a scan needs all elements before it.
    if (stage.scan >= 0)
      need[static_cast<size_t>(stage.scan)] = {Expr(0), box[static_cast<size_t>(stage.scan)]};
    placed.need = need;
    std::vector<int64_t> all = box;
    double own = static_cast<double>(stage.out_elems());
    for (const Digit& digit : stage.red) {
      all.push_back(digit.extent);
      own *= static_cast<double>(digit.extent);
    }
    placed.recompute =
        evaluations(iterated(number), all, placed.path, placement_.extents) / std::max(1.0, own);
    placed.bytes = 0;
    for (const Value& value : stage.values)
      placed.bytes +=
          (volume(need) * placed.filled * tensor::type_bytes(value.type) + 63) / 64 * 64;
  }

  // The region of stage `number` that `reader` reads through `load`, seen from the stage's place.
  Region read_region(size_t number, size_t reader, const Load& load) {
    const Stage& stage = graph_.stages[number];
    Placed& placed = placement_.stages[number];
    const Placed& other = placement_.stages[reader];
    for (const Expr& coordinate : load.coordinates) {
      if (!coordinate.uses_runtime()) continue;
      placement_.decision = Decision::no("runtime-index", "{} reads {} at a run-time offset",
                                         graph_.stages[reader].name, stage.name);
      return {};
    }
    index::Map map{known_[reader].extents, load.coordinates};
    Region region = index::image(map, iterated(reader), placement_.extents,
                                 known_[number].out_extents, &placed.widened);
    const Row& row = std::get<Row>(schedule_.nodes[placed.row]);
    // Through memory, the whole driven part is there. On a template's tile, elements correspond one
    // to one whatever the map's digits (invert_epilogue); inside loops that drive other stages, the
    // part that these need.
    const bool on_tile = other.row == placed.row && row.is_tile();
    if (other.phase != placed.phase || (on_tile && (placed.path.empty() || is_driven(number)))) {
      Region part(stage.out.size());
      for (size_t d = 0; d < stage.out.size(); ++d)
        driven(number, static_cast<int>(d), stage.out[d].extent, &part[d]);
      return part;
    }
    if (order_.at(other.row) < order_.at(placed.row)) {
      placement_.decision = Decision::no("order", "{} reads {} before it is computed",
                                         graph_.stages[reader].name, stage.name);
      return region;
    }
    const size_t common = common_loops(placed, other);
    for (size_t i = common; i < other.path.size(); ++i)
      region = index::sweep(region, other.path[i], placement_.extents[other.path[i]],
                            known_[number].out_extents);
    if (common < placed.path.size()) return fill(number, reader, common, region);
    return region;
  }

  // The reader comes after loops of the stage: legal if these are serial and fill all that is read.
  // One step computes its driven part.
  Region fill(size_t number, size_t reader, size_t home, const Region& region) {
    const Stage& stage = graph_.stages[number];
    Placed& placed = placement_.stages[number];
    Region part(stage.out.size());
    for (size_t d = 0; d < stage.out.size(); ++d)
      driven(number, static_cast<int>(d), stage.out[d].extent, &part[d]);
    Region all = part;
    int64_t steps = 1;
    bool serial = true;
    for (size_t i = placed.path.size(); i-- > home;) {
      const int loop = placed.path[i];
      serial &= std::get<Loop>(schedule_.nodes[static_cast<size_t>(loop)]).kind == LoopKind::serial;
      steps *= placement_.extents[static_cast<size_t>(loop)];
      all = index::sweep(all, loop, placement_.extents[static_cast<size_t>(loop)],
                         known_[number].out_extents);
    }
    const Decision inside = index::contains(all, region, placement_.extents);
    if (!serial || !inside)
      placement_.decision =
          Decision::no("other-block", "{} is computed inside a loop that {} is not in", stage.name,
                       graph_.stages[reader].name);
    placed.filled = std::max(placed.filled, steps);
    return part;
  }

  void choose_spaces() {
    for (size_t i = 0; i < graph_.stages.size(); ++i) {
      const Stage& stage = graph_.stages[i];
      Placed& placed = placement_.stages[i];
      placed.space = Space::reg;
      size_t last = i;
      for (const auto& [reader, load] : known_[i].reads) {
        if (reader != last) placed.space = std::max(placed.space, space_for(i, reader));
        last = reader;
      }
      if (!placement_.decision) return;
      if (placed.space == Space::reg) placed.bytes = 0;
      // A stored value that a task reads back must have been stored by that task alone.
      Region part(stage.out.size());
      for (size_t d = 0; d < stage.out.size(); ++d)
        driven(i, static_cast<int>(d), stage.out[d].extent, &part[d]);
      if (stored(i)) {
        Decision inside = index::contains(part, placed.need, placement_.extents);
        if (!inside) {
          placement_.decision =
              Decision::no("other-block", "{}: a task reads what others store ({})", stage.name,
                           inside.reason());
          return;
        }
      }
    }
    placement_.scratch_bytes = lay_out();
    if (placement_.scratch_bytes > most_scratch_)
      placement_.decision = Decision::no("space-full", "scratch needs {} bytes, only {} fit",
                                         placement_.scratch_bytes, most_scratch_);
  }

  // A value is live from its computation to its last read, in each iteration of the loops around
  // both.
  int64_t lay_out() const {
    std::vector<arena::Block> blocks;
    for (size_t i = 0; i < graph_.stages.size(); ++i) {
      const Placed& placed = placement_.stages[i];
      if (placed.space != Space::scratch) continue;
      size_t home = placed.path.size();
      for (const auto& [reader, load] : known_[i].reads)
        home = std::min(home, common_loops(placed, placement_.stages[reader]));
      arena::Block block{placed.bytes, span_below(placed, home).first, 0};
      for (const auto& [reader, load] : known_[i].reads)
        block.last = std::max(block.last, span_below(placement_.stages[reader], home).second);
      blocks.push_back(block);
    }
    if (blocks.size() < 2) return blocks.empty() ? 0 : blocks[0].bytes;
    if (!shares_) {
      int64_t sum = 0;
      for (const arena::Block& block : blocks) sum += block.bytes;
      return sum;
    }
    return arena::assign_offsets(blocks, /*work=*/0).height_bytes;
  }

  static size_t common_loops(const Placed& one, const Placed& other) {
    const auto [end, unused] = std::ranges::mismatch(one.path, other.path);
    return static_cast<size_t>(end - one.path.begin());
  }

  // The first and last step of the node that contains the stage inside its outermost `loops` loops.
  std::pair<int64_t, int64_t> span_below(const Placed& placed, size_t loops) const {
    return spans_[static_cast<size_t>(loops < placed.path.size() ? placed.path[loops]
                                                                 : placed.row)];
  }

  Space space_for(size_t number, size_t reader) {
    const Placed& placed = placement_.stages[number];
    const Placed& other = placement_.stages[reader];
    if (other.phase != placed.phase) return Space::global;
    if (other.row == placed.row) {
      const Row& row = std::get<Row>(schedule_.nodes[placed.row]);
      auto position = [&](size_t stage) {
        return static_cast<size_t>(std::find(row.joined.begin(), row.joined.end(), StageId(stage)) -
                                   row.joined.begin());
      };
      if (!row.is_tile() && !reads_current_point(graph_, row, position(reader), position(number)))
        placement_.decision = Decision::no("not-joined", "{} reads {} away from the current point",
                                           graph_.stages[reader].name, graph_.stages[number].name);
      return Space::reg;
    }
    return volume(placed.need) * placed.filled == 1 ? Space::reg : Space::scratch;
  }

  const StageGraph& graph_;
  const Schedule& schedule_;
  const int64_t most_scratch_;
  // False on a GPU: its subgroups have separate scratch, and a kernel that does not fit cannot run
  // at all.
  const bool shares_;
  std::vector<Known> known_;  // by stage
  Placement placement_;
  std::unordered_map<int, size_t> order_;           // of rows, in the order of execution
  std::vector<std::pair<int64_t, int64_t>> spans_;  // by node: its first and last step
  int64_t steps_ = 0;
};

}  // namespace

int64_t scratch_limit(const target::Target& target) { return target.second_cache_bytes() / 2; }

Placement place_values(const StageGraph& graph, const Schedule& schedule,
                       const target::Target& target) {
  return Inference(graph, schedule, target).run();
}

namespace {

// Whether the stage is not stored and all its reads have the same coordinates: then its loops begin
// where the reader's do, shifted by a constant.
bool follows_one_reader(const StageGraph& graph, StageId stage) {
  for (const Value& value : graph.stage(stage).values)
    if (value.output >= 0) return false;
  const Load* first = nullptr;
  for (const Stage& reader : graph.stages) {
    for (const Load& load : reader.loads) {
      if (load.source.input >= 0 || !(load.source.stage == stage)) continue;
      if (first && !(first->coordinates == load.coordinates)) return false;
      first = &load;
    }
  }
  return true;
}

}  // namespace

bool reads_current_point(const StageGraph& graph, const Row& row, size_t reader, size_t stage) {
  const Stage& from = graph.stage(row.joined[stage]);
  const Stage& to = graph.stage(row.joined[reader]);
  std::vector<std::pair<int, int>> same;  // digit of `to`, digit of `from`
  for (const Own& own : row.own) {
    if (own.digits[reader] < 0) continue;  // it comes after that loop
    if (own.digits[stage] >= static_cast<int>(from.out.size())) return false;
    same.emplace_back(own.digits[reader], own.digits[stage]);
  }
  const bool may_shift = from.scan < 0 && follows_one_reader(graph, row.joined[stage]);
  for (const Load& load : to.loads) {
    if (load.source.input >= 0 || !(load.source.stage == row.joined[stage])) continue;
    for (const auto& [to_digit, from_digit] : same) {
      const Expr& x = load.coordinates[from_digit];
      if (x.factor_of(to_digit) != 1 || (x.constant() != 0 && !may_shift)) return false;
      for (const auto& [other, unused] : same)
        if (other != to_digit && x.uses(other)) return false;
    }
    // Digits of `from` without a loop of the row must not depend on such loops of `to`.
    for (size_t d = 0; d < load.coordinates.size(); ++d) {
      bool owned = std::any_of(same.begin(), same.end(),
                               [&](auto& pair) { return pair.second == static_cast<int>(d); });
      if (owned) continue;
      for (const auto& [to_digit, unused] : same)
        if (load.coordinates[d].uses(to_digit)) return false;
    }
  }
  return true;
}

std::string describe(const StageGraph& graph, const Schedule& schedule,
                     const Placement& placement) {
  std::vector<std::string> names;
  for (size_t i = 0; i < schedule.nodes.size(); ++i) {
    const Loop* loop = std::get_if<Loop>(&schedule.nodes[i]);
    names.push_back(loop ? loop->var : "");
  }
  std::string text;
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    const Placed& placed = placement.stages[i];
    text += fmt::format("{}: phase {}, {}, need {}, recompute {:.3g}, {} bytes\n",
                        graph.stages[i].name, placed.phase, space_name(placed.space),
                        index::to_string(placed.need, names), placed.recompute, placed.bytes);
    for (const std::string& reason : placed.widened) text += "  " + reason + "\n";
  }
  return text;
}

}  // namespace heddle::stage
