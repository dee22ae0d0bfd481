#include "stitch/in_place.h"

#include <algorithm>
#include <tuple>

#include "schedule/pooled.h"
#include "stage/epilogue.h"
#include "stitch/stitch.h"

namespace heddle::stitch {

namespace {

using stage::Row;
using stage::Stage;

class Overwriting {
 public:
  Overwriting(const stage::PlacedFusion& placed, const stage::Output& output)
      : placed_(placed),
        writer_(static_cast<int>(output.stage.index())),
        is_chain_(stage::is_chain(placed)) {
    for (const auto& phase : placed.schedule.phases)
      for (const stage::Group& group : phase) {
        group_ = static_cast<int>(&group - phase.data());
        for (int node : group.body) visit(node);
      }
  }

  // Rank of overwriting `input`: 0: only the writer reads it; 1: the writer and others do; 2: only
  // others do; -1: not allowed.
  int rank(int input) const {
    const Where* writer = where(writer_);
    if (!writer || row(*writer).winograd() || !is_once(writer_)) return -1;
    bool own = false, others = false;
    for (size_t s = 0; s < placed_.graph.stages.size(); ++s) {
      for (const stage::Load& load : placed_.graph.stages[s].loads) {
        if (load.source.input != input) continue;
        // A chain's links have different tiles: only the stage itself reads in the order of its
        // stores.
        if (is_chain_ && (static_cast<int>(s) != writer_ || !row(*writer).gemm())) return -1;
        if (!before(static_cast<int>(s), load, *writer)) return -1;
        (static_cast<int>(s) == writer_ ? own : others) = true;
      }
    }
    if (!own && !others) return -1;
    return own ? others : 2;
  }

 private:
  static constexpr double kOnce = 1.0001;  // of Placed::recompute

  struct Where {
    int stage = 0, group = 0, row = 0, member = 0;  // of the phase, node number, of the row
  };

  void visit(int node) {
    if (const auto* loop = std::get_if<stage::Loop>(&placed_.schedule.nodes[node])) {
      for (int inner : loop->body) visit(inner);
      return;
    }
    const auto& joined = std::get<Row>(placed_.schedule.nodes[node]).joined;
    for (size_t i = 0; i < joined.size(); ++i)
      order_.push_back({static_cast<int>(joined[i].index()), group_, node, static_cast<int>(i)});
  }

  const Where* where(int stage) const {
    const auto found = std::find_if(order_.begin(), order_.end(),
                                    [&](const Where& one) { return one.stage == stage; });
    return found == order_.end() ? nullptr : &*found;
  }

  const stage::Placed& at(int stage) const {
    return placed_.placement.stages[static_cast<size_t>(stage)];
  }

  const Row& row(const Where& place) const {
    return std::get<Row>(placed_.schedule.nodes[place.row]);
  }

  // Whether `stage` reads the elements of `load` before the writer stores there.
  bool before(int stage, const stage::Load& load, const Where& writer) const {
    const Where* reader = where(stage);
    if (!reader || at(stage).phase > at(writer_).phase) return false;
    if (at(stage).phase < at(writer_).phase) return true;
    const Stage& reading = placed_.graph.stages[static_cast<size_t>(stage)];
    const Stage& writing = placed_.graph.stages[static_cast<size_t>(writer_)];
    if (reader->group != writer.group || reader > &writer || !load.guards.empty() ||
        iterated(reading) != writing.out_extents() || !(load.coordinates[0] == writing.position))
      return false;
    // With several values, one is stored before the next one's operands are read.
    if (stage == writer_) return writing.values.size() == 1;
    return (is_once(stage) && same_order(*reader, writer) && same_task(reading, stage));
  }

  // A scatter reads its table where it writes it; the digits of its updates do not count.
  static std::vector<int64_t> iterated(const Stage& stage) {
    return stage.scatter >= 0 ? stage.out_extents() : stage.extents();
  }

  // Whether each element is computed in one iteration of the loops around the stage. Adjacent tiles
  // that do not divide a digit reach past its end, where nothing is computed, but `recompute`
  // counts it.
  bool is_once(int stage) const {
    if (at(stage).recompute <= kOnce) return true;
    const auto& computing =
        std::get<Row>(placed_.schedule.nodes[static_cast<size_t>(at(stage).row)]);
    if (computing.gemm() && !is_chain_) return false;
    const Stage& computed = placed_.graph.stages[static_cast<size_t>(stage)];
    double filled = 1;  // elements in the tiles over elements in the digits
    for (size_t d = 0; d < computed.out.size(); ++d) {
      const int64_t extent = computed.out[d].extent, tile = at(stage).need[d].extent;
      std::vector<int64_t> steps;  // of the loops around it
      for (int loop : at(stage).path)
        for (const stage::Drive& drive :
             std::get<stage::Loop>(placed_.schedule.nodes[static_cast<size_t>(loop)]).drives)
          if (static_cast<int>(drive.stage.index()) == stage && drive.digit == static_cast<int>(d))
            steps.push_back(drive.by);
      if (steps.empty()) steps.push_back(extent);
      std::sort(steps.begin(), steps.end());
      if (steps.front() != tile) return false;
      for (size_t i = 1; i < steps.size(); ++i)
        if (steps[i] % steps[i - 1] != 0) return false;
      filled *= static_cast<double>((extent + steps.back() - 1) / steps.back() * steps.back()) /
                static_cast<double>(extent);
    }
    return at(stage).recompute <= filled * kOnce;
  }

  // Whether the loops of a common row run through both in the same order.
  bool same_order(const Where& reader, const Where& writer) const {
    if (reader.row != writer.row) return true;
    if (row(writer).gemm()) return same_tile_element(reader, writer);
    const auto& own = row(writer).own;
    return std::all_of(own.begin(), own.end(), [&](const stage::Own& loop) {
      return loop.digits[static_cast<size_t>(reader.member)] ==
             loop.digits[static_cast<size_t>(writer.member)];
    });
  }

  // A tile is stored before others are computed: whether both are at the same element of the tile,
  // neither transposed against the other.
  bool same_tile_element(const Where& reader, const Where& writer) const {
    std::vector<std::vector<index::Expr>> digits;
    return static_cast<bool>(stage::invert_epilogue(placed_.graph, row(writer).joined, &digits)) &&
           digits[static_cast<size_t>(reader.stage)] == digits[static_cast<size_t>(writer.stage)];
  }

  // Whether in every iteration of the loops around both, the elements read are among those written.
  bool same_task(const Stage& reading, int stage) const {
    const auto &a = at(stage).path, &b = at(writer_).path;
    size_t common = 0;
    while (common < a.size() && common < b.size() && a[common] == b[common]) ++common;
    index::Region read = swept(stage, common);
    const index::Region written = swept(writer_, common);
    for (const stage::Digit& digit : reading.red) read.push_back({index::Expr(0), digit.extent});
    return static_cast<bool>(index::contains(written, read, placed_.placement.extents));
  }

  index::Region swept(int stage, size_t common) const {
    const stage::Placed& here = at(stage);
    index::Region region = here.need;
    const std::vector<int64_t> all = placed_.graph.stages[static_cast<size_t>(stage)].out_extents();
    for (size_t i = here.path.size(); i-- > common;)
      region = index::sweep(region, here.path[i],
                            placed_.placement.extents[static_cast<size_t>(here.path[i])], all);
    return region;
  }

  const stage::PlacedFusion& placed_;
  const int writer_;
  const bool is_chain_;
  int group_ = 0;
  std::vector<Where> order_;  // as they run
};

}  // namespace

bool may_overwrite(const Stitched& stitched) {
  for (size_t o = 0; o < stitched.in_place.size(); ++o)
    if ((o < stitched.in_part.size() && stitched.in_part[o]) || !overwritable(stitched, o).empty())
      return true;
  return false;
}

std::vector<int> overwritable(const Stitched& stitched, size_t output) {
  const int chosen = output < stitched.in_place.size() ? stitched.in_place[output] : -1;
  std::vector<int> result;
  if (chosen >= 0) result.push_back(chosen);
  if (output < stitched.may_overwrite.size())
    for (int input : stitched.may_overwrite[output])
      if (input != chosen) result.push_back(input);
  return result;
}

OverwrittenInputs overwritten_inputs(const stage::PlacedFusion& placed) {
  const auto& [outputs, inputs] = std::tie(placed.graph.outputs, placed.graph.inputs);
  OverwrittenInputs result;
  result.allowed.resize(outputs.size());
  result.chosen.assign(outputs.size(), -1);
  std::vector<bool> taken(inputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const int array = outputs[o].array;
    if (array < 0) continue;
    result.chosen[o] = array;
    taken[static_cast<size_t>(array)] = true;
  }
  if (stage::is_pooled(placed)) return result;
  const std::vector<bool> arrays = taken;
  std::vector<std::vector<int>> ranks;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Overwriting overwriting(placed, outputs[o]);
    std::vector<int>& mine = ranks.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool fits =
          inputs[i].shape.bytes() == outputs[o].shape.bytes() &&
          tensor::type_bytes(inputs[i].shape.type()) == tensor::type_bytes(outputs[o].shape.type());
      const bool free = fits && !arrays[i] && outputs[o].array < 0;
      mine.push_back(free ? overwriting.rank(static_cast<int>(i)) : -1);
      if (mine.back() >= 0) result.allowed[o].push_back(static_cast<int>(i));
    }
  }
  for (int rank = 0; rank <= 2; ++rank)
    for (size_t o = 0; o < outputs.size(); ++o)
      for (size_t i = 0; i < inputs.size() && result.chosen[o] < 0; ++i) {
        if (taken[i] || ranks[o][i] != rank) continue;
        result.chosen[o] = static_cast<int>(i);
        taken[i] = true;
      }
  return result;
}

}  // namespace heddle::stitch
