#include "stage/top_k.h"

#include <algorithm>

#include "base/check.h"
#include "hlo/top_k_part.h"
#include "stage/correspond.h"

namespace heddle::stage {

namespace {

constexpr int64_t kMostInRegisters = 16, kLongestInLanes = 512, kFewestRows = 4;

}  // namespace

bool has_top_k(const tensor::Shape& shape, int64_t k) {
  switch (shape.type()) {
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
    case Type::s8:
    case Type::u8:
    case Type::s16:
    case Type::u16:
    case Type::s32:
    case Type::s64:
      break;
    default:
      return false;
  }
  return shape.is_static() && shape.rank() >= 1 && k >= 1 && k <= kMostTopK &&
         shape.dim(-1) <= INT32_MAX;
}

bool has_top_k_in_lanes(const tensor::Shape& shape, int64_t k) {
  return has_top_k(shape, k) && k <= kMostInRegisters && shape.dim(-1) <= kLongestInLanes &&
         shape.elems() >= kFewestRows * shape.dim(-1);
}

bool is_top_k(const Stage& stage) {
  return stage.instr && stage.kind == hlo::StageKind::reduce &&
         hlo::top_k_part(*stage.instr).has_value();
}

bool has_top_k(const StageGraph& graph) {
  return std::any_of(graph.stages.begin(), graph.stages.end(),
                     [](const Stage& stage) { return is_top_k(stage); });
}

int list_digit(const Stage& stage) {
  const int64_t k = hlo::top_k_part(*stage.instr)->k;
  if (k == 1) return -1;
  HEDDLE_CHECK(!stage.out.empty() && stage.out.back().extent == k, "{}: its list has another digit",
               stage.name);
  return static_cast<int>(stage.out.size()) - 1;
}

bool keeps_list_in_registers(const Stage& stage) {
  return hlo::top_k_part(*stage.instr)->k <= kMostInRegisters &&
         stage.red_elems() <= kLongestInLanes;
}

std::vector<Own> top_k_loops(const Stage& stage, const std::vector<int64_t>& extents, int lanes) {
  if (!keeps_list_in_registers(stage)) return {};
  const int list = list_digit(stage);
  int best = -1;
  for (int d = 0; d < static_cast<int>(stage.out.size()); ++d)
    if (d != list && extents[d] >= kFewestRows && (best < 0 || extents[d] >= extents[best]))
      best = d;
  if (best < 0) return {};
  return {{LoopKind::vector, {best}, lanes}};
}

int64_t top_k_rows(const StageGraph& graph, size_t anchor, int digit,
                   const target::Target& target) {
  const std::vector<int> same = corresponding_digits(graph, anchor, digit);
  for (size_t i = 0; i < graph.stages.size(); ++i) {
    if (same[i] < 0 || !is_top_k(graph.stages[i]) || !keeps_list_in_registers(graph.stages[i]))
      continue;
    const int64_t extent = graph.stages[anchor].out[digit].extent;
    const int64_t lanes = target.lanes(Type::f32);
    if (extent % lanes == 0) return lanes;
    for (int64_t rows = std::min(extent, 2 * lanes); rows >= kFewestRows; --rows)
      if (extent % rows == 0) return rows;
  }
  return 1;
}

bool divides_list(const StageGraph& graph, const std::vector<int>& same) {
  for (size_t i = 0; i < graph.stages.size(); ++i)
    if (is_top_k(graph.stages[i]) && same[i] >= 0 && same[i] == list_digit(graph.stages[i]))
      return true;
  return false;
}

}  // namespace heddle::stage
