// Merges digits that are adjacent wherever they occur: the sums over n, h and w of an image with
// the channels last are sums over one digit (stages.md §7, flattening).
#include <algorithm>
#include <map>

#include "stage/stage_graph.h"

namespace heddle::stage {

using index::Expr;

namespace {

class Merger {
 public:
  explicit Merger(StageGraph* graph) : graph_(*graph) {}

  void run() {
    while (merge_one()) {
    }
  }

 private:
  using Place = std::pair<size_t, int>;  // stage, digit

  bool merge_one() {
    for (size_t s = graph_.stages.size(); s-- > 0;) {
      const auto digits = static_cast<int>(graph_.stages[s].extents().size());
      for (int d = 0; d + 1 < digits; ++d) {
        std::map<size_t, int> where;  // the first digit of the pair, by stage
        if (!follow({s, d}, &where)) continue;
        for (const auto& [stage, digit] : where) merge(stage, digit);
        return true;
      }
    }
    return false;
  }

  bool are_beside(size_t stage, int digit) const {
    const auto out = static_cast<int>(graph_.stages[stage].out.size());
    const auto all = static_cast<int>(graph_.stages[stage].extents().size());
    return digit + 1 < all && digit + 1 != out;
  }

  // Collects the stages that have the pair's digits, through readers and producers. False: the pair
  // cannot be merged in all of them.
  bool follow(Place first, std::map<size_t, int>* where) const {
    std::vector<Place> work{first};
    const int64_t inner = extent(first.first, first.second + 1);
    while (!work.empty()) {
      const auto [stage, digit] = work.back();
      work.pop_back();
      const auto [known, fresh] = where->emplace(stage, digit);
      if (!fresh) {
        if (known->second != digit) return false;
        continue;
      }
      if (!are_beside(stage, digit) || extent(stage, digit + 1) != inner ||
          extent(stage, digit) != extent(first.first, first.second) || !allows(stage, digit))
        return false;
      for (const Load& load : graph_.stages[stage].loads)
        if (load.source.input < 0 && !follow_load(load, digit, &work)) return false;
      // Readers do not see a reduced digit.
      const bool is_out = digit < static_cast<int>(graph_.stages[stage].out.size());
      for (size_t r = 0; is_out && r < graph_.stages.size(); ++r)
        for (const Load& load : graph_.stages[r].loads)
          if (load.source.input < 0 && load.source.stage.index() == stage &&
              !follow_reader(r, load, digit, &work))
            return false;
    }
    return true;
  }

  int64_t extent(size_t stage, int digit) const {
    return graph_.stages[stage].extents()[static_cast<size_t>(digit)];
  }

  // A load must use both digits of the pair, adjacent, or neither.
  static bool follow_load(const Load& load, int digit, std::vector<Place>* work) {
    for (size_t j = 0; j < load.coordinates.size(); ++j) {
      const Expr& x = load.coordinates[j];
      if (!x.uses(digit) && !x.uses(digit + 1)) continue;
      const bool first = x == Expr::digit(digit) && j + 1 < load.coordinates.size() &&
                         load.coordinates[j + 1] == Expr::digit(digit + 1);
      const bool second =
          x == Expr::digit(digit + 1) && j > 0 && load.coordinates[j - 1] == Expr::digit(digit);
      if (!first && !second) return false;
      if (first) work->emplace_back(load.source.stage.index(), static_cast<int>(j));
    }
    return true;
  }

  static bool follow_reader(size_t reader, const Load& load, int digit, std::vector<Place>* work) {
    int here = -1, next = -1;
    if (!load.coordinates[static_cast<size_t>(digit)].is_digit(&here) ||
        !load.coordinates[static_cast<size_t>(digit) + 1].is_digit(&next) || next != here + 1)
      return false;
    work->emplace_back(reader, here);
    return true;
  }

  // Whether all accesses of the stage use the pair as one digit.
  bool allows(size_t number, int digit) const {
    const Stage& stage = graph_.stages[number];
    if (stage.scatter >= 0 && digit == 0) return false;  // the digit of rows stays separate
    const int64_t inner = extent(number, digit + 1);
    auto merged = [&](const Expr& x) {
      const int64_t low = x.factor_of(digit + 1), high = x.factor_of(digit);
      const Expr rest = x - Expr::digit(digit) * high - Expr::digit(digit + 1) * low;
      return high == low * inner && !rest.uses(digit) && !rest.uses(digit + 1);
    };
    auto all = [&](const std::vector<index::Guard>& guards) {
      return std::all_of(guards.begin(), guards.end(),
                         [&](const index::Guard& guard) { return merged(guard.value); });
    };
    for (const Load& load : stage.loads)
      if (!all(load.guards) || (load.source.input >= 0 && !merged(load.coordinates[0])))
        return false;
    for (const Node& node : stage.nodes)
      if (!merged(node.index) || !all(node.guards)) return false;
    return digit >= static_cast<int>(stage.out.size()) || merged(stage.position);
  }

  void merge(size_t number, int digit) {
    Stage& stage = graph_.stages[number];
    const int64_t inner = extent(number, digit + 1);
    const auto count = static_cast<int>(stage.extents().size());
    const auto out = static_cast<int>(stage.out.size());
    std::vector<Digit>& list = digit < out ? stage.out : stage.red;
    const auto at = static_cast<size_t>(digit < out ? digit : digit - out);
    list[at].extent *= inner;
    list.erase(list.begin() + static_cast<int64_t>(at) + 1);
    // The merged digit has the inner one's factor.
    std::vector<Expr> with;
    for (int d = 0; d < count; ++d)
      with.push_back(d == digit ? Expr(0) : Expr::digit(d > digit ? d - 1 : d));
    const std::vector<int64_t> box = stage.extents();
    auto moved = [&](Expr& x) { x = substitute(x, with, box); };
    for (Load& load : stage.loads) {
      for (Expr& x : load.coordinates) {
        // In a load of a stage, the pair's coordinates become one when that stage is merged.
        if (load.source.input < 0 && x == Expr::digit(digit)) continue;
        moved(x);
      }
      for (index::Guard& guard : load.guards) moved(guard.value);
    }
    for (Node& node : stage.nodes) {
      moved(node.index);
      for (index::Guard& guard : node.guards) moved(guard.value);
    }
    moved(stage.position);
    if (digit >= out) return;
    // Readers have one coordinate for the merged digit.
    for (Stage& reader : graph_.stages)
      for (Load& load : reader.loads)
        if (load.source.input < 0 && load.source.stage.index() == number)
          load.coordinates.erase(load.coordinates.begin() + digit + 1);
  }

  StageGraph& graph_;
};

}  // namespace

void merge_digits(StageGraph* graph) {
  for (const Stage& stage : graph->stages)
    for (const Load& load : stage.loads)
      for (const Expr& x : load.coordinates)
        if (x.uses_runtime()) return;
  Merger(graph).run();
}

}  // namespace heddle::stage
