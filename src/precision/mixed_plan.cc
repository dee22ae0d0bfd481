#include "precision/mixed_plan.h"

#include <cmath>

#include "cost/rates.h"
#include "precision/min_cut.h"
#include "schedule/gemm.h"

namespace heddle::precision {
namespace {

using tensor::Type;

constexpr double kPicoseconds = 1000;
// For a depthwise convolution that reads 16 bits: each element is converted once per vector. Tiles
// require operands of their type, and a kernel that converts them gains nothing.
constexpr double kWidening = 0.1;
// The least saving for which a value is rounded: rounding costs accuracy.
constexpr double kLeastGainNs = 100;
constexpr double kNeverNs = static_cast<double>(MinCut::kNever) / kPicoseconds;

class Planner {
 public:
  Planner(const MixedGraph& graph, const target::Target& target, Type low)
      : graph_(graph), target_(target), low_(low) {}

  MixedPlan run(MixedRule rule) {
    const size_t values = graph_.values.size(), all = values + graph_.products.size();
    std::vector<bool> chosen = rule == MixedRule::cost ? cut() : propagated();
    chosen.resize(all);
    MixedPlan plan;
    plan.low = low_;
    plan.f32_ns = energy(std::vector<bool>(all, false));
    plan.mixed_ns = energy(chosen);
    for (size_t i = 0; i < all; ++i) {
      MixedChoice choice;
      choice.is_product = i >= values;
      const auto identify = [&](const auto& of) {
        choice.name = of.name;
        choice.opcode = of.opcode;
        choice.extents = of.extents;
      };
      choice.is_product ? identify(product(i)) : identify(graph_.values[i]);
      choice.low = chosen[i];
      const std::string& fixed = why_fixed(i);
      if (!choice.low) choice.why = fixed.empty() ? "cost" : fixed;
      choice.gain_ns = own_ns(i, false) - own_ns(i, true);
      if (choice.is_product || !graph_.values[i].is_constant) plan.choices.push_back(choice);
    }
    return plan;
  }

 private:
  bool is_product(size_t node) const { return node >= graph_.values.size(); }
  const MixedProduct& product(size_t node) const {
    return graph_.products[node - graph_.values.size()];
  }
  const std::string& why_fixed(size_t node) const {
    return is_product(node) ? product(node).fixed : graph_.values[node].fixed;
  }
  double moved_ns(double bytes) const {
    return cost::transfer_ns(cost::Transition::memory_reg, bytes, target_.cores, target_);
  }

  // Time of a value or product, without conversions.
  double own_ns(size_t node, bool low) const {
    if (!is_product(node)) {
      const StoredValue& value = graph_.values[node];
      if (value.is_constant) return 0;  // counted with the product that reads it
      const double bytes = static_cast<double>(value.bytes) / (low ? 2 : 1);
      return moved_ns(bytes) * (1 + value.reads) + (low ? kLeastGainNs : 0);
    }
    const MixedProduct& p = product(node);
    double bytes = 0;
    for (int operand : p.operands)
      if (operand >= 0 && graph_.values[static_cast<size_t>(operand)].is_constant)
        bytes += static_cast<double>(graph_.values[static_cast<size_t>(operand)].bytes);
    double rate = target_.peak_flops_per_ns(low ? low_ : Type::f32);
    if (low && p.flops_per_ns > 0) rate = p.flops_per_ns;
    return cost::overlapped_ns(p.flops / rate, moved_ns(low ? bytes / 2 : bytes)) +
           (low ? kLeastGainNs : 0);
  }
  // Cost of a 16-bit product that reads a value stored in f32: the value is also written in 16
  // bits. For an input that takes a kernel, or nothing if it is rounded while it is copied.
  double narrowing_ns(const MixedProduct& p, size_t side) const {
    const StoredValue& value = graph_.values[static_cast<size_t>(p.operands[side])];
    if (value.is_copied) return kNeverNs;
    if (value.is_input && value.reads == 1 && side == 1 && p.rounds_right) return 0;
    const double written = moved_ns(static_cast<double>(value.bytes) / 2);
    if (!value.is_input) return written;
    return written + moved_ns(static_cast<double>(value.bytes)) + cost::call_ns(false, 1, target_);
  }
  double widening_ns(const MixedProduct& p) const {
    if (!p.reads_narrow) return kNeverNs;
    return kWidening * p.flops / target_.peak_flops_per_ns(Type::f32);
  }

  // Conversion by a separate kernel: a rule may require it, a cut never does.
  double apart_ns(const StoredValue& value) const {
    return moved_ns(1.5 * static_cast<double>(value.bytes)) + cost::call_ns(false, 1, target_);
  }

  double energy(const std::vector<bool>& chosen) const {
    double sum = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      sum += own_ns(i, chosen[i]);
      if (!is_product(i)) continue;
      for (size_t side : {size_t{0}, size_t{1}}) {
        const int operand = product(i).operands[side];
        if (!is_variable(operand)) continue;
        const bool stored = chosen[static_cast<size_t>(operand)];
        const StoredValue& value = graph_.values[static_cast<size_t>(operand)];
        if (chosen[i] && !stored) sum += std::min(narrowing_ns(product(i), side), apart_ns(value));
        if (!chosen[i] && stored) sum += std::min(widening_ns(product(i)), apart_ns(value));
      }
    }
    return sum;
  }
  bool is_variable(int operand) const {
    return operand >= 0 && !graph_.values[static_cast<size_t>(operand)].is_constant;
  }

  std::vector<bool> cut() const {
    const size_t all = graph_.values.size() + graph_.products.size();
    MinCut cut(static_cast<int>(all));
    const auto cost = [](double ns) { return std::llround(ns * kPicoseconds); };
    for (size_t i = 0; i < all; ++i) {
      const int node = static_cast<int>(i);
      const bool constant = !is_product(i) && graph_.values[i].is_constant;
      if (!why_fixed(i).empty() || constant) cut.pay_if(node, MinCut::kNever);
      cut.pay_if(node, cost(own_ns(i, true)));
      cut.pay_unless(node, cost(own_ns(i, false)));
      if (!is_product(i)) continue;
      for (size_t side : {size_t{0}, size_t{1}}) {
        const int operand = product(i).operands[side];
        if (!is_variable(operand)) continue;
        cut.pay_between(node, operand, cost(narrowing_ns(product(i), side)));
        cut.pay_between(operand, node, cost(widening_ns(product(i))));
      }
    }
    return cut.solve();
  }

  std::vector<bool> propagated() const {
    std::vector<bool> chosen(graph_.values.size() + graph_.products.size());
    for (size_t i = 0; i < chosen.size(); ++i) {
      const bool constant = !is_product(i) && graph_.values[i].is_constant;
      chosen[i] = why_fixed(i).empty() && !constant;
    }
    return chosen;
  }

  const MixedGraph& graph_;
  const target::Target& target_;
  Type low_;
};

}  // namespace

MixedPlan plan_mixed(const MixedGraph& graph, const target::Target& target, Type low,
                     MixedRule rule) {
  return Planner(graph, target, low).run(rule);
}

Type fastest_small_float(const target::Target& target) {
  // There are no instructions for words of f16: that type only saves memory, so it is used only if
  // bf16 has none, either.
  const bool words =
      schedule::find_product(Type::bf16, Type::bf16, Type::f32, target) != kernel::plain_mma();
  return !words && target.peak_flops_per_ns(Type::f16) > target.peak_flops_per_ns(Type::bf16)
             ? Type::f16
             : Type::bf16;
}

}  // namespace heddle::precision
