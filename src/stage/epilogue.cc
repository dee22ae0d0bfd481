#include "stage/epilogue.h"

#include <algorithm>

namespace heddle::stage {

using index::Expr;

namespace {

// x = Σ factor·t over the reader's digits, a mixed-radix number that fills [0, extent): then each
// t is a quotient and remainder of x.
bool invert(const Expr& x, const Stage& reader, int64_t extent, const Expr& value,
            const std::vector<int64_t>& box, std::vector<Expr>* digits, std::vector<bool>* known) {
  if (!x.is_affine() || x.constant() != 0) return false;
  std::vector<std::pair<int64_t, int>> radix;
  for (const index::Term& term : x.terms()) {
    if (term.factor <= 0 || term.atom.kind != index::Atom::Kind::digit) return false;
    radix.emplace_back(term.factor, term.atom.id);
  }
  std::sort(radix.begin(), radix.end());
  int64_t next = 1;
  for (const auto& [factor, digit] : radix) {
    if (factor != next || digit >= static_cast<int>(reader.out.size())) return false;
    int64_t n = reader.out[digit].extent;
    const Expr found = mod(floor_div(value, factor, box), n, box);
    // Read at two different positions: no tile has both.
    if ((*known)[digit] && !((*digits)[digit] == found)) return false;
    (*digits)[digit] = found;
    (*known)[digit] = true;
    next *= n;
  }
  return next == extent;
}

}  // namespace

Decision invert_epilogue(const StageGraph& graph, const std::vector<StageId>& joined,
                         std::vector<std::vector<Expr>>* digits) {
  const Stage& from = graph.stage(joined[0]);
  const std::vector<int64_t> box = from.out_extents();
  digits->assign(graph.stages.size(), {});
  std::vector<bool> on_tile(graph.stages.size(), false);  // other values are read from memory
  on_tile[joined[0].index()] = true;
  (*digits)[joined[0].index()] = index::identity(box).results;
  for (size_t j = 1; j < joined.size(); ++j) {
    const Stage& stage = graph.stage(joined[j]);
    std::vector<Expr> mine(stage.out.size());
    std::vector<bool> known(stage.out.size(), false);
    bool reads = false;
    for (const Load& load : stage.loads) {
      if (load.source.input >= 0 || !on_tile[load.source.stage.index()]) continue;
      size_t source = load.source.stage.index();
      const Stage& other = graph.stages[source];
      if (!load.guards.empty())
        return Decision::no("gemm-epilogue", "{} reads {} in part", stage.name, other.name);
      for (size_t d = 0; d < load.coordinates.size(); ++d) {
        if (!invert(load.coordinates[d], stage, other.out[d].extent, (*digits)[source][d], box,
                    &mine, &known))
          return Decision::no("gemm-epilogue", "{} reads {} at {}", stage.name, other.name,
                              index::to_string(load.coordinates[d]));
      }
      reads = true;
    }
    if (!reads || std::find(known.begin(), known.end(), false) != known.end())
      return Decision::no("gemm-epilogue", "{} does not match {} element by element", stage.name,
                          from.name);
    (*digits)[joined[j].index()] = std::move(mine);
    on_tile[joined[j].index()] = true;
  }
  return Decision::yes();
}

}  // namespace heddle::stage
