#include "compiler/run_time.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/equal_fusions.h"
#include "cost/latency.h"
#include "hlo/join.h"
#include "hlo/loop_trips.h"
#include "hlo/views.h"
#include "schedule/place.h"

namespace heddle::compiler {
namespace {

using hlo::Instr;
using hlo::Opcode;

class RunClock {
 public:
  RunClock(const target::Target& target, bool fast_forms)
      : target_(target), fast_forms_(fast_forms) {}

  double ns(const hlo::Computation& computation) {
    double total = 0;
    std::unordered_set<const Instr*> once;  // depend on constants alone
    for (const Instr* x : computation.instrs()) {
      const bool constant =
          !x->is(Opcode::parameter) && !x->is(Opcode::rng) && !hlo::has_effect(*x) &&
          std::all_of(x->operands().begin(), x->operands().end(),
                      [&](const Instr* operand) { return once.contains(operand); });
      if (constant)
        once.insert(x);
      else
        total += ns(x);
    }
    return total;
  }

 private:
  double ns(const Instr* x) {
    if (x->is(Opcode::parameter) || x->is(Opcode::tuple) || hlo::is_view_or_element(x)) return 0;
    if (x->is(Opcode::fusion)) return kernel_ns(x);
    if (x->is(Opcode::while_)) {
      const double trips = static_cast<double>(hlo::known_trips(x).value_or(1));
      return (trips + 1) * ns(*x->called()[0]) + trips * ns(*x->called()[1]);
    }
    if (x->is(Opcode::conditional) || x->is(Opcode::call)) {
      double longest = 0;
      for (const hlo::Computation* side : x->called()) longest = std::max(longest, ns(*side));
      return longest;
    }
    return moved_ns(x) + cost::call_ns(/*serial=*/true, 1, target_);
  }

  double moved_ns(const Instr* x) const {
    double bytes = bytes_of(x->shape());
    for (const Instr* operand : x->operands()) bytes += bytes_of(operand->shape());
    return cost::transfer_ns(cost::Transition::memory_reg, bytes, cost::core_count(target_),
                             target_);
  }
  static double bytes_of(const tensor::Shape& shape) {
    if (shape.is_array()) return shape.is_static() ? static_cast<double>(shape.bytes()) : 0;
    double bytes = 0;
    if (shape.is_tuple())
      for (const tensor::Shape& element : shape.elements()) bytes += bytes_of(element);
    return bytes;
  }

  // Equal fusions, as those of equal layers, are placed once.
  double kernel_ns(const Instr* fusion) {
    const hlo::Computation& fused = *fusion->called().at(0);
    auto& alike = known_[shallow_hash(fused)];
    for (const auto& [one, ns] : alike)
      if (are_equal(*one, fused)) return ns;
    const double ns = placed_ns(fusion, fused);
    known_[shallow_hash(fused)].emplace_back(&fused, ns);
    return ns;
  }
  double placed_ns(const Instr* fusion, const hlo::Computation& fused) {
    if (hlo::join_of(*fusion) == hlo::Join::loop)
      return loop_kernel_ns(fused, target_, [&](const Instr* step) { return kernel_ns(step); });
    if (hlo::join_of(*fusion) != hlo::Join::none) {
      std::vector<double> parts;
      for (const Instr* part : fused.instrs())
        if (part->is(Opcode::fusion)) parts.push_back(kernel_ns(part));
      return joined_kernel_ns(parts, target_);
    }
    const stage::PlacedFusion placed = schedule::place(fused, target_, fast_forms_);
    return placed.decision ? cost::latency(placed, target_).ns : moved_ns(fusion);
  }

  const target::Target& target_;
  const bool fast_forms_;
  std::unordered_map<uint64_t, std::vector<std::pair<const hlo::Computation*, double>>> known_;
};

}  // namespace

double predicted_run_ns(const hlo::Module& fused, const target::Target& target, bool fast_forms) {
  return RunClock(target, fast_forms).ns(*fused.entry());
}

double loop_kernel_ns(const hlo::Computation& fused, const target::Target& target,
                      const std::function<double(const Instr* step)>& step_ns) {
  double ns = 0;
  for (const Instr* instr : fused.instrs()) {
    if (!instr->is(Opcode::while_)) continue;
    const Instr* loop = hlo::loop_of_steps(instr);
    const int64_t strips = loop == instr ? 1 : *hlo::known_trips(instr);
    const int64_t trips = (strips + target.cores - 1) / target.cores * *hlo::known_trips(loop);
    for (const Instr* step : loop->called()[1]->instrs())
      if (step->is(Opcode::fusion))
        ns += static_cast<double>(trips) * std::max(0.0, step_ns(step) - target.serial_command_ns);
  }
  return ns;
}

double joined_kernel_ns(const std::vector<double>& parts, const target::Target& target) {
  const double call = cost::call_ns(/*serial=*/true, 1, target);
  double ns = call;
  for (const double part : parts) ns += std::max(0.0, part - call);
  return ns;
}

}  // namespace heddle::compiler
