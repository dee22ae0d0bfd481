#include "schedule/place.h"

#include <algorithm>

#include "cost/latency.h"
#include "schedule/chain.h"
#include "schedule/fast_forms.h"
#include "schedule/fill_lanes.h"
#include "schedule/phases.h"
#include "schedule/strategy.h"

namespace heddle::schedule {

Problem::Problem(const stage::Members& members, const target::Target& on, bool fast_forms)
    : target(on), members_(members), fast_forms_(fast_forms) {
  const bool cpu = target.kind == target::DeviceKind::cpu;
  StagedOrNot staged = stage::build_stage_graph(members, {.scans = cpu, .parts = cpu});
  decision = staged.decision;
  graph = std::move(staged.graph);
  if (decision && !cpu && has(hlo::StageKind::scatter))
    decision = Decision::no("no-kernel", "no threads of a GPU own rows of a table");
  if (decision && fast_forms) mark_fast_forms(&graph);
}

const std::optional<Problem::Product>& Problem::product() const {
  if (product_) return *product_;
  product_.emplace();
  for (size_t i = 0; i < graph.stages.size() && !*product_; ++i) {
    const bool conv = graph.stages[i].kind == hlo::StageKind::conv;
    if (graph.stages[i].kind != hlo::StageKind::dot && !conv) continue;
    GemmShapeOrNot match = match_gemm(graph, StageId(i));
    // Convolutions outside the family (for example one feature per group) are treated as
    // reductions.
    if (!match.decision && (graph.stages.size() == 1 || conv) &&
        !match_gemm(graph, StageId(i), /*rounded=*/true).decision)
      continue;
    product_->emplace(Product{StageId(i), std::move(match), conv});
  }
  return *product_;
}

const StageGraph& Problem::row_graph() const {
  if (!row_graph_) {
    row_graph_ = graph;
    flatten_digits(&*row_graph_);
    fill_lanes(&*row_graph_, target.lanes(Type::f32));
  }
  return *row_graph_;
}

bool Problem::has(hlo::StageKind kind) const {
  return std::any_of(graph.stages.begin(), graph.stages.end(),
                     [&](const Stage& stage) { return stage.kind == kind; });
}

StageGraph Problem::staged_again(stage::Repeat repeat) const {
  const bool cpu = target.kind == target::DeviceKind::cpu;
  StagedOrNot staged =
      stage::build_stage_graph(members_, {.repeat = repeat, .scans = cpu, .parts = cpu});
  if (fast_forms_) mark_fast_forms(&staged.graph);
  return std::move(staged.graph);
}

const std::vector<Strategy>& all_strategies() {
  static const std::vector<Strategy> kAll = {
#define STRATEGY(name, rule, text) {#name, Rule::rule, text, name##_applies, place_##name},
#include "schedule/strategies.def"
#undef STRATEGY
  };
  return kAll;
}

std::string to_string(const std::vector<Attempt>& attempts) {
  std::string text;
  for (const auto& [strategy, decision, ns] : attempts) {
    text += fmt::format("strategy {}: ", strategy);
    if (!decision)
      text += fmt::format("{} ({})\n", decision.reason(), decision.code());
    else
      text += ns > 0 ? fmt::format("predicted {:.1f} us\n", ns / 1e3) : "taken, as it fits\n";
  }
  return text;
}

PlacedFusion place(const stage::Members& members, const target::Target& target, bool fast_forms,
                   std::vector<Attempt>* attempts) {
  Problem problem(members, target, fast_forms);
  PlacedFusion best, refused;
  best.decision = problem.decision;
  if (!problem.decision) return best;
  best.decision = refused.decision = Decision::no("no-strategy", "no strategy applies");
  // A schedule that leaves cores idle must be cheaper by this factor than one that does not. By
  // price alone, batch normalisation's backward pass in NHWC and Sinkhorn's iterations took 1.05 to
  // 1.15 times as long on two cores (bench/results); small norms' backward passes stay faster.
  constexpr double kIdle = 1.4;
  bool is_rows = false;
  double least = 0;
  for (const Strategy& strategy : all_strategies()) {
    if (!strategy.applies(problem, best)) continue;
    PlacedFusion placed = strategy.place(problem);
    placed.strategy = strategy.name;
    const bool priced = strategy.rule == Rule::priced;
    const double ns = placed.decision && priced ? cost::latency(placed, target).ns : 0;
    if (attempts) attempts->push_back({strategy.name, placed.decision, ns});
    if (strategy.rule == Rule::alone || (!priced && placed.decision)) return placed;
    if (!placed.decision) {
      // Of the row strategies, the first and plainest refusal is reported.
      if (placed.decision.code() == kDoesNotApply) continue;
      if (!is_rows) refused = std::move(placed);
      is_rows |= priced;
      continue;
    }
    is_rows |= priced;
    const bool idle = has_few_tasks(placed, target);
    problem.leaves_idle |= idle;
    const double price = idle ? ns * kIdle : ns;
    if (!best.decision || price < least) {
      best = std::move(placed);
      least = price;
    }
  }
  return best.decision ? best : refused;
}

}  // namespace heddle::schedule
