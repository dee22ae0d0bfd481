#include "stage/correspond.h"

namespace heddle::stage {

std::vector<int> corresponding_digits(const StageGraph& graph, size_t anchor, int digit) {
  std::vector<int> result(graph.stages.size(), -1);
  result[anchor] = digit;
  bool changed = true;
  // A digit of another extent (a reader of a slice, one side of a concatenation) does not
  // correspond.
  const int64_t extent = graph.stages[anchor].out[digit].extent;
  auto set = [&](size_t stage, int d) {
    if (result[stage] >= 0 || graph.stages[stage].out[d].extent != extent) return;
    result[stage] = d;
    changed = true;
  };
  while (changed) {
    changed = false;
    for (size_t reader = 0; reader < graph.stages.size(); ++reader) {
      const Stage& to = graph.stages[reader];
      for (const Load& load : to.loads) {
        if (load.source.input >= 0) continue;
        size_t from = load.source.stage.index();
        for (size_t j = 0; j < load.coordinates.size(); ++j) {
          int d = 0;
          if (!load.coordinates[j].is_digit(&d) || d >= static_cast<int>(to.out.size())) continue;
          if (result[reader] == d) set(from, static_cast<int>(j));
          if (result[from] == static_cast<int>(j)) set(reader, d);
        }
      }
    }
  }
  // Outputs that no read connects to the anchor, but that have the same digits.
  for (size_t i = 0; i < graph.stages.size(); ++i)
    if (result[i] < 0 && graph.stages[i].out == graph.stages[anchor].out) result[i] = digit;
  return result;
}

std::vector<int> moves_along(const StageGraph& graph, size_t from, int digit) {
  std::vector<int> result(graph.stages.size(), -1);
  result[from] = digit;
  const int64_t extent = graph.stages[from].extents()[static_cast<size_t>(digit)];
  bool changed = true;
  auto set = [&](size_t stage, int d) {
    if (result[stage] >= 0 || graph.stages[stage].extents()[static_cast<size_t>(d)] != extent)
      return;
    result[stage] = d;
    changed = true;
  };
  auto share_input = [&](const Load& one, int d, size_t other) {
    const int64_t factor = one.coordinates[0].factor_of(d);
    if (factor == 0) return;
    for (const Load& load : graph.stages[other].loads) {
      if (load.source.input != one.source.input) continue;
      const auto digits = static_cast<int>(graph.stages[other].extents().size());
      for (int e = 0; e < digits; ++e)
        if (load.coordinates[0].factor_of(e) == factor) set(other, e);
    }
  };
  while (changed) {
    changed = false;
    for (size_t reader = 0; reader < graph.stages.size(); ++reader) {
      for (const Load& load : graph.stages[reader].loads) {
        if (load.source.input >= 0) {
          for (size_t other = 0; result[reader] >= 0 && other < graph.stages.size(); ++other)
            if (result[other] < 0) share_input(load, result[reader], other);
          continue;
        }
        const size_t source = load.source.stage.index();
        for (size_t j = 0; j < load.coordinates.size(); ++j) {
          int d = 0;
          if (!load.coordinates[j].is_digit(&d)) continue;
          if (result[reader] == d) set(source, static_cast<int>(j));
          if (result[source] == static_cast<int>(j)) set(reader, d);
        }
      }
    }
  }
  return result;
}

}  // namespace heddle::stage
