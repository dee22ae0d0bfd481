// The interface of strategies: the problem that they get, and their entries (strategies.def lists
// them, place.h calls them).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// A fusion to be placed. Facts that several strategies need are computed once.
class Problem {
 public:
  Problem(const stage::Members& members, const target::Target& target, bool fast_forms);

  // No: the fusion has no stage graph; no strategy is tried.
  Decision decision = Decision::yes();
  const target::Target& target;
  StageGraph graph;  // fast forms are marked

  // A legal schedule leaves cores without tasks: cutting a dimension into strips may be worth its
  // phases.
  bool leaves_idle = false;

  // A product of the GEMM family, or a dot outside of it beside other stages.
  struct Product {
    StageId stage;
    GemmShapeOrNot match;
    bool is_conv = false;
  };
  const std::optional<Product>& product() const;
  // The graph for rows: adjacent digits are merged where every access allows it, and vectors are
  // full.
  const StageGraph& row_graph() const;
  // Staged again so that a (cheap) value with several readers gets no separate stage; not
  // flattened.
  StageGraph staged_again(stage::Repeat repeat = stage::Repeat::cheap) const;
  bool has(hlo::StageKind kind) const;

 private:
  const stage::Members& members_;
  const bool fast_forms_;
  mutable std::optional<std::optional<Product>> product_;
  mutable std::optional<StageGraph> row_graph_;
};

// Whether row strategies may apply: a product among other stages belongs in the tiles of its
// family, or in another kernel.
bool may_be_rows(const Problem& problem);

// See strategies.def.
enum class Rule : uint8_t { alone, first, priced };

// The code of a strategy that finds out only while placing that it does not apply.
inline constexpr const char* kDoesNotApply = "does-not-apply";

struct Strategy {
  std::string_view name;
  Rule rule;
  std::string_view text;
  // A cheap test. `best`: the cheapest legal schedule so far, or a refusal.
  bool (*applies)(const Problem& problem, const PlacedFusion& best);
  PlacedFusion (*place)(const Problem& problem);
};
const std::vector<Strategy>& all_strategies();

#define STRATEGY(name, rule, text)                                       \
  bool name##_applies(const Problem& problem, const PlacedFusion& best); \
  PlacedFusion place_##name(const Problem& problem);
#include "schedule/strategies.def"
#undef STRATEGY

}  // namespace heddle::schedule
