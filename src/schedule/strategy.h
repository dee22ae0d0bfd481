// What a strategy is asked with, and what it answers (strategies.def lists them, place.h asks).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "schedule/gemm.h"
#include "schedule/stage_names.h"

namespace heddle::schedule {

// A fusion that is to be placed. Facts that several strategies ask for are found once.
class Problem {
 public:
  Problem(const stage::Members& members, const target::Target& target, bool fast_forms);

  // No: the fusion has no stage graph; nobody is asked.
  Decision decision = Decision::yes();
  const target::Target& target;
  StageGraph graph;  // fast forms are marked

  // Some legal way leaves cores without tasks: a dimension in strips may be worth its phases.
  bool leaves_idle = false;

  // A product of the GEMM family, or a dot that is none though others stand beside it.
  struct Product {
    StageId stage;
    GemmShapeOrNot match;
    bool is_conv = false;
  };
  const std::optional<Product>& product() const;
  // The graph for rows: adjacent digits are one where every access allows it, vectors are full.
  const StageGraph& row_graph() const;
  // Staged so that a (cheap) value with several readers has no stage of its own; not flattened.
  StageGraph staged_again(stage::Repeat repeat = stage::Repeat::cheap) const;
  bool has(hlo::StageKind kind) const;

 private:
  const stage::Members& members_;
  const bool fast_forms_;
  mutable std::optional<std::optional<Product>> product_;
  mutable std::optional<StageGraph> row_graph_;
};

// A product among other stages is in the tiles of its family, or in another kernel.
bool may_be_rows(const Problem& problem);

// See strategies.def.
enum class Rule : uint8_t { alone, first, priced };

// The code of a strategy that only finds out as it begins that there is nothing for it to do.
inline constexpr const char* kDoesNotApply = "does-not-apply";

struct Strategy {
  std::string_view name;
  Rule rule;
  std::string_view text;
  // Cheap. `best`: what is legal and cheapest so far, or a refusal.
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
