// A transpose of a product's result moves into the product's kernel, which stores it in that order
// (for example a network's result with its features before its pixels). Refusals: the codes of
// schedule::place, and `across-lanes` if the stores would take longer than a transposing kernel.
#include <algorithm>

#include "cost/chain_cost.h"
#include "cost/strides.h"
#include "fuse/group_merger.h"

namespace heddle::fuse {

namespace {

class TurnMerger : public GroupMerger {
 public:
  using GroupMerger::GroupMerger;

  void visit(Group* turns) {
    if (turns->has_dot || turns->once) return;
    Instr* value = nullptr;
    bool turned = false;
    for (const Instr* member : turns->members) {
      turned |= member->is(Opcode::transpose);
      if (!member->is(Opcode::transpose) && !member->is(Opcode::reshape) &&
          !member->is(Opcode::bitcast))
        return;
      for (Instr* operand : member->operands()) {
        if (has(*turns, operand)) continue;
        if (value && value != operand) return;
        value = operand;
      }
    }
    Group* product = value && turned ? product_group(value) : nullptr;
    if (!product || product == turns) return;
    const Decision decision = may_join(product, turns);
    if (decision)
      join(turns, product);
    else
      refuse(value, turns->members.back(), decision);
  }

 private:
  Decision may_join(Group* product, Group* turns) const {
    const stage::PlacedFusion placed = place({product, turns});
    if (!placed.decision) return placed.decision;
    if (!stage::is_gemm(placed))
      return Decision::no("gemm-family", "the product would lose its template");
    // Single elements are stored at one per cycle; separate kernels write, read and write all of it
    // again.
    const double cores = std::max(target_.cores, 1);
    const double stores =
        static_cast<double>(cost::scattered_stores(placed)) / target_.clock_ghz / cores;
    double bytes = 0;
    for (const Instr* member : turns->members)
      if (member->is(Opcode::transpose)) bytes = static_cast<double>(member->shape().bytes());
    const double apart = 2 * cost::moved_ns(bytes, target_) + target_.launch_ns;
    if (stores > apart)
      return Decision::no("across-lanes",
                          "{:.3g} us for its stores, {:.3g} us in a separate kernel", stores / 1e3,
                          apart / 1e3);
    return is_closed({product, turns});
  }
};

}  // namespace

Result<bool> merge_turns(OpenCover& cover, const Context& context) {
  return visit_groups<TurnMerger>(cover, context);
}

}  // namespace heddle::fuse
