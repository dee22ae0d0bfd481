// Chooses the dimension to cut, how every stage depends on it, and the phase that computes each
// stage.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "schedule/lane_digit.h"
#include "schedule/phases.h"
#include "stage/correspond.h"
#include "tensor/type.h"

namespace heddle::schedule {

using index::Expr;

namespace {

constexpr int64_t kLeastExtent = 8, kLeastElems = 8192;  // of the dimension; of a task's work
// Values that take more cycles per element are kept for the next phase, not recomputed.
constexpr int kCostly = 24;

bool is_output(const Stage& stage) {
  return std::any_of(stage.values.begin(), stage.values.end(),
                     [](const Value& value) { return value.output >= 0; });
}

int64_t points(const Stage& stage) { return stage.out_elems() * stage.red_elems(); }

class Cutter {
 public:
  Cutter(const StageGraph& graph, const target::Target& target, CutChoice choice)
      : from_(graph), target_(target), choice_(choice) {}

  CutGraph run() {
    choose_dimension();
    if (result_.decision) expand();
    if (!result_.decision) return std::move(result_);
    find_levels();
    drop_dead();
    keep_costly();
    result_.graph.name = from_.name;
    result_.graph.inputs = from_.inputs;
    result_.graph.outputs = from_.outputs;
    result_.graph.rewrites = from_.rewrites;
    instance_.assign(parts_.size(), StageId());
    for (int level = 0; level <= last_level_; ++level) add_level(level);
    return std::move(result_);
  }

 private:
  // A stage of the graph with its reductions split.
  struct Part {
    Stage stage;
    Cut cut;
    int level = 0;
    bool kept = false;  // stored in memory for later phases
  };

  // Chooses the dimension along which most of the work is, preferably not the dimension of the
  // lanes.
  void choose_dimension() {
    const size_t largest = largest_stage(from_);
    const Stage& stage = from_.stages[largest];
    const std::vector<int64_t> extents = stage.extents();
    using Score = std::tuple<int64_t, bool, int>;
    std::optional<Score> best;
    for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
      const int64_t extent = extents[static_cast<size_t>(d)];
      if (extent < kLeastExtent || (choice_.digit >= 0 && d != choice_.digit)) continue;
      const std::vector<int> along = moves_along(from_, largest, d);
      int64_t others = 0;
      for (size_t i = 0; i < along.size(); ++i)
        if (along[i] < 0) others += points(from_.stages[i]);
      const bool lanes = extents.size() > 1 && contiguity(stage, d) > 0;
      const Score score{8 * others > points(stage) ? others : 0, lanes, d};
      if (best && *best <= score) continue;
      best = score;
      along_ = along;
      result_.strips.extent = extent;
    }
    const int64_t elems = points(stage);
    if (!best || std::get<0>(*best) > 0 || elems < 2 * kLeastElems) {
      result_.decision = Decision::no("no-dimension", "no dimension to cut into strips");
      return;
    }
    choose_parts(elems);
  }

  // Parts depend on shape and target only.
  void choose_parts(int64_t elems) {
    const int64_t extent = result_.strips.extent;
    int64_t wanted = std::max<int64_t>(16, 4 * int64_t{target_.cores});
    wanted = std::max<int64_t>(2, std::min({wanted, extent / 2, elems / kLeastElems}));
    if (choice_.parts > 0) wanted = std::max<int64_t>(2, std::min(choice_.parts, extent / 2));
    for (int64_t off = 0; off <= wanted; ++off) {
      for (const int64_t parts : {wanted + off, wanted - off}) {
        if (parts < std::max<int64_t>(2, wanted / 2) || extent % parts != 0) continue;
        result_.strips.parts = parts;
        result_.strips.strip = extent / parts;
        return;
      }
    }
    result_.strips.strip = (extent + wanted - 1) / wanted;
    result_.strips.parts = (extent + result_.strips.strip - 1) / result_.strips.strip;
  }

  // Splits every reduction along the dimension into a partial and a combining one.
  void expand() {
    std::vector<StageId> moved;
    for (size_t i = 0; i < from_.stages.size() && result_.decision; ++i) {
      Stage stage = from_.stages[i];
      for (Load& load : stage.loads)
        if (load.source.input < 0) load.source.stage = moved[load.source.stage.index()];
      const int digit = along_[i];
      if (digit < 0 || digit < static_cast<int>(stage.out.size())) {
        const Cut::Kind kind = digit < 0 ? Cut::Kind::whole : Cut::Kind::along;
        if (stage.kind == hlo::StageKind::dot || stage.kind == hlo::StageKind::conv)
          result_.decision = Decision::no("no-partials", "{} is a product", stage.name);
        parts_.push_back({std::move(stage), {kind, digit}});
      } else {
        split(std::move(stage), digit);
      }
      moved.push_back(StageId(parts_.size() - 1));
    }
  }

  void split(Stage stage, int digit) {
    auto no = [&](const char* why) {
      result_.decision = Decision::no("no-partials", "{}: {}", stage.name, why);
      parts_.push_back({std::move(stage), {}});
    };
    if (!stage.combine || stage.values.size() != 1 || !stage.instr->is(hlo::Opcode::reduce))
      return no("no reduction of one value");
    const Value value = stage.values[0];
    const Type type = stage::partial_type(value.type);
    const std::optional<uint64_t> neutral = neutral_bits(stage, type);
    if (!neutral) return no("its combiner is not a single operator");
    if (value.init < 0 || stage.nodes[static_cast<size_t>(value.init)].kind != Node::Kind::constant)
      return no("its initial value is not a constant");
    if (stage.red.size() > 1 && stage.out_elems() == 1 && reads_along(stage)) {
      Stage outer = combining(stage, type, {"r", result_.strips.extent});
      parts_.push_back({row_sum(std::move(stage), digit, type, *neutral), {Cut::Kind::along, 0}});
      outer.loads[0].source.stage = StageId(parts_.size() - 1);
      return split(std::move(outer), 0);
    }
    Stage combine = combining(stage, type, {"p", result_.strips.parts});
    parts_.push_back({partial_sum(std::move(stage), digit, result_.strips, type, *neutral), {}});
    parts_.back().cut = {Cut::Kind::partial, digit + 1};
    combine.loads[0].source.stage = StageId(parts_.size() - 1);
    parts_.push_back({std::move(combine), {}});
  }

  bool reads_along(const Stage& stage) const {
    return std::any_of(stage.loads.begin(), stage.loads.end(), [&](const Load& load) {
      return load.source.input < 0 &&
             parts_[load.source.stage.index()].cut.kind == Cut::Kind::along;
    });
  }

  // Whether a load of `reader` reads only its strip of `source`, a stage along the dimension.
  static bool is_own_strip(const Part& reader, const Load& load, const Part& source) {
    const Expr& x = load.coordinates[static_cast<size_t>(source.cut.digit)];
    if (reader.cut.kind == Cut::Kind::along) return x == Expr::digit(reader.cut.digit);
    if (reader.cut.kind == Cut::Kind::whole) return false;
    const auto strip = reader.stage.extents()[static_cast<size_t>(reader.cut.digit)];
    return x == Expr::digit(0) * strip + Expr::digit(reader.cut.digit);
  }

  void find_levels() {
    for (Part& part : parts_) {
      part.kept = part.cut.kind == Cut::Kind::partial ||
                  (part.cut.kind == Cut::Kind::along && is_output(part.stage));
      for (const Load& load : part.stage.loads) {
        if (load.source.input >= 0) continue;
        Part& source = parts_[load.source.stage.index()];
        bool later = source.cut.kind == Cut::Kind::partial;
        if (source.cut.kind == Cut::Kind::along && !is_own_strip(part, load, source))
          later = source.kept = true;
        part.level = std::max(part.level, source.level + (later ? 1 : 0));
      }
      last_level_ = std::max(last_level_, part.level);
    }
  }

  static int cost(const Stage& stage) {
    if (stage.is_reduction()) return kCostly + 1;
    int cycles = 0;
    for (const Node& node : stage.nodes)
      if (node.kind == Node::Kind::op) cycles += hlo::is_costly(node.opcode) ? 12 : 1;
    return cycles;
  }

  // Drops stages that no output needs.
  void drop_dead() {
    std::vector<bool> live(parts_.size(), false);
    for (size_t i = parts_.size(); i-- > 0;) {
      live[i] = live[i] || is_output(parts_[i].stage);
      if (!live[i]) {
        parts_[i].kept = false;
        continue;
      }
      for (const Load& load : parts_[i].stage.loads)
        if (load.source.input < 0) live[load.source.stage.index()] = true;
    }
  }

  // From readers to producers: `until` is the last level that needs a value which is not kept.
  void keep_costly() {
    std::vector<int> until(parts_.size(), -1);
    for (size_t i = parts_.size(); i-- > 0;) {
      Part& part = parts_[i];
      if (part.cut.kind == Cut::Kind::along && until[i] > part.level && cost(part.stage) > kCostly)
        part.kept = true;
      const int asked = part.kept || is_output(part.stage) ? part.level : until[i];
      for (const Load& load : part.stage.loads)
        if (load.source.input < 0)
          until[load.source.stage.index()] =
              std::max(until[load.source.stage.index()], std::max(asked, part.level));
    }
  }

  // Work on stages without the dimension that every strip's task would repeat.
  int64_t repeated_points(const std::vector<size_t>& wanted) const {
    int64_t total = 0;
    for (size_t i : closure(wanted))
      if (parts_[i].cut.kind == Cut::Kind::whole) total += points(parts_[i].stage);
    return total;
  }

  bool lies_in_memory(size_t part) const { return parts_[part].kept && instance_[part].valid(); }

  std::vector<size_t> closure(std::vector<size_t> wanted) const {
    std::vector<bool> seen(parts_.size(), false);
    for (size_t i : wanted) seen[i] = true;
    for (size_t next = 0; next < wanted.size(); ++next) {
      for (const Load& load : parts_[wanted[next]].stage.loads) {
        if (load.source.input >= 0) continue;
        const size_t source = load.source.stage.index();
        if (seen[source] || lies_in_memory(source)) continue;
        seen[source] = true;
        wanted.push_back(source);
      }
    }
    std::sort(wanted.begin(), wanted.end());
    return wanted;
  }

  void add_level(int level) {
    std::vector<size_t> swept, heads;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      if (part.level != level) continue;
      if (part.cut.kind != Cut::Kind::whole) {
        if (part.kept) swept.push_back(i);
      } else if (is_output(part.stage)) {
        heads.push_back(i);
      }
    }
    // Too much work to repeat in every task: a phase before this one computes the values that the
    // strips read directly.
    if (!swept.empty()) {
      int64_t work = 0;
      for (size_t i : swept) work += points(parts_[i].stage);
      if (8 * result_.strips.parts * repeated_points(swept) > work) {
        std::vector<size_t> first;
        for (size_t i : closure(swept)) {
          if (parts_[i].cut.kind == Cut::Kind::whole) continue;
          for (const Load& load : parts_[i].stage.loads) {
            if (load.source.input >= 0) continue;
            const size_t source = load.source.stage.index();
            if (parts_[source].cut.kind == Cut::Kind::whole && !lies_in_memory(source))
              first.push_back(source);
          }
        }
        for (size_t i : heads) first.push_back(i);
        heads.clear();
        std::sort(first.begin(), first.end());
        first.erase(std::unique(first.begin(), first.end()), first.end());
        for (size_t i : first) parts_[i].kept = true;
        result_.phases.emplace_back();
        add_group(first, false);
      }
    }
    if (swept.empty() && heads.empty()) return;
    for (size_t i : heads) parts_[i].kept = true;
    result_.phases.emplace_back();
    if (!swept.empty()) add_group(swept, true);
    if (!heads.empty()) add_group(heads, false);
  }

  void add_group(const std::vector<size_t>& wanted, bool strips) {
    CutGroup group;
    group.strips = strips;
    StageGraph& graph = result_.graph;
    std::map<size_t, StageId> here;
    for (size_t i : closure(wanted)) {
      Stage stage = parts_[i].stage;
      const bool stores = std::binary_search(wanted.begin(), wanted.end(), i);
      for (Load& load : stage.loads) {
        if (load.source.input >= 0) continue;
        const size_t source = load.source.stage.index();
        load.source.stage = here.count(source) ? here.at(source) : instance_[source];
      }
      const StageId id(graph.stages.size());
      for (Value& value : stage.values) {
        if (!stores) value.output = -1;
        if (value.output >= 0) graph.outputs[static_cast<size_t>(value.output)].stage = id;
      }
      if (!stores) stage.name += fmt::format(".{}", id.index());
      here.emplace(i, id);
      graph.stages.push_back(std::move(stage));
      result_.cuts.push_back(parts_[i].cut);
      group.stages.push_back(id);
    }
    for (size_t i : wanted)
      if (parts_[i].kept) instance_[i] = here.at(i);
    result_.phases.back().push_back(std::move(group));
  }

  const StageGraph& from_;
  const target::Target& target_;
  const CutChoice choice_;
  CutGraph result_;
  std::vector<int> along_;
  std::vector<Part> parts_;
  std::vector<StageId> instance_;  // of each part that is in memory
  int last_level_ = 0;
};

}  // namespace

size_t largest_stage(const StageGraph& graph) {
  size_t largest = 0;
  for (size_t i = 0; i < graph.stages.size(); ++i)
    if (points(graph.stages[i]) > points(graph.stages[largest])) largest = i;
  return largest;
}

CutGraph cut_graph(const StageGraph& graph, const target::Target& target, CutChoice choice) {
  return Cutter(graph, target, choice).run();
}

}  // namespace heddle::schedule
