#include "cost/held_registers.h"

#include <algorithm>

#include "hlo/top_k_part.h"
#include "stage/correspond.h"
#include "stage/top_k.h"
#include "target/held_registers.h"

namespace heddle::cost {

namespace {

using stage::LoopKind;
using stage::PlacedFusion;
using stage::Row;
using stage::Stage;

int words(tensor::Type type) { return static_cast<int>((tensor::type_bytes(type) + 3) / 4); }

// The digit of a stage that runs along the lanes; -1: none.
int lane_digit(const Row& row, size_t member) {
  if (row.own.empty()) return -1;
  const LoopKind kind = row.own.back().kind;
  return kind == LoopKind::thread || kind == LoopKind::vector ? row.own.back().digits[member] : -1;
}

struct Place {
  const Row* row = nullptr;  // null: it is in no row of the group
  size_t number = 0, member = 0;
  int lane() const { return row ? lane_digit(*row, member) : -1; }
  int width() const { return row ? row->width : 1; }
};

std::vector<Place> places_of(const PlacedFusion& placed, const std::vector<const Row*>& rows) {
  std::vector<Place> places(placed.graph.stages.size());
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t m = 0; m < rows[r]->joined.size(); ++m)
      places[rows[r]->joined[m].index()] = {rows[r], r, m};
  return places;
}

// Elements of one value that a lane holds, if element e always belongs to lane e mod lanes; else 0.
int64_t elems_of_lane(const PlacedFusion& placed, size_t stage, int lane, int lanes, int width) {
  const index::Region& need = placed.placement.stages[stage].need;
  if (placed.placement.stages[stage].space != stage::Space::scratch || lane < 0 ||
      lane >= std::ssize(need))
    return 0;
  int64_t elems = 1;
  for (int d = 0; d < std::ssize(need); ++d) {
    elems *= need[d].extent;
    if (d > lane && need[d].extent > 1) return 0;
  }
  const int64_t step = int64_t{lanes} * width;
  if (elems > need[lane].extent && need[lane].extent % step != 0) return 0;
  return (elems + step - 1) / step * width;
}

// The last row that reads the stage; -1: another lane reads it.
int64_t last_own_reader(const PlacedFusion& placed, const std::vector<Place>& places, size_t stage,
                        int lane) {
  const std::vector<int> same = stage::moves_along(placed.graph, stage, lane);
  auto last = static_cast<int64_t>(places[stage].number);
  for (size_t r = 0; r < placed.graph.stages.size(); ++r)
    for (const stage::Load& load : placed.graph.stages[r].loads) {
      if (load.source.input >= 0 || load.source.stage.index() != stage) continue;
      if (!places[r].row || same[r] < 0 || places[r].lane() != same[r]) return -1;
      last = std::max(last, static_cast<int64_t>(places[r].number));
    }
  return last;
}

}  // namespace

std::vector<int> held_registers(const PlacedFusion& placed, const std::vector<const Row*>& rows,
                                int lanes, int64_t* bytes) {
  std::vector<int> held(rows.size(), 0);
  const std::vector<Place> places = places_of(placed, rows);
  int64_t left = target::kHeldRegisters;
  for (size_t s = 0; s < placed.graph.stages.size(); ++s) {
    const int lane = places[s].lane();
    const int64_t elems = elems_of_lane(placed, s, lane, lanes, places[s].width());
    const int64_t last = elems > 0 ? last_own_reader(placed, places, s, lane) : -1;
    if (last < 0) continue;
    for (const stage::Value& value : placed.graph.stages[s].values) {
      const int64_t registers = elems * words(value.type);
      if (registers > left) continue;
      left -= registers;
      if (bytes) *bytes += elems * lanes * tensor::type_bytes(value.type);
      for (int64_t r = static_cast<int64_t>(places[s].number); r <= last; ++r)
        held[static_cast<size_t>(r)] += static_cast<int>(registers);
    }
  }
  return held;
}

int list_registers(const Stage& stage, const Row& row) {
  if (!stage::is_top_k(stage) || row.own.empty()) return 0;
  const auto k = static_cast<int>(hlo::top_k_part(*stage.instr)->k);
  // Keys are as wide as the values, at least 4 bytes; indices take 4. Half of them exist twice
  // while an element is inserted.
  return k * (words(stage.values[0].type) + 1) * 3 / 2;
}

}  // namespace heddle::cost
