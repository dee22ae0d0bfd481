// Reductions over the rows of a product that another kernel would read again become a part of the
// product's kernel (schedule/column_sums.h).
#include <algorithm>

#include "fuse/group_merger.h"

namespace heddle::fuse {

namespace {

class SumMerger : public GroupMerger {
 public:
  using GroupMerger::GroupMerger;

  void visit(Group* sums) {
    const bool reduces = std::any_of(sums->members.begin(), sums->members.end(),
                                     [](const Instr* x) { return x->is(Opcode::reduce); });
    if (!reduces || sums->has_dot || sums->once) return;
    for (const Instr* member : std::vector<Instr*>(sums->members)) {
      for (Instr* operand : member->operands()) {
        if (has(*sums, operand)) continue;
        Group* product = product_group(operand);
        if (!product) continue;
        const Decision decision = may_join(product, sums);
        if (decision) return join(sums, product);
        return refuse(operand, sums->members.back(), decision);
      }
    }
  }

 private:
  Decision may_join(Group* product, Group* sums) const {
    const stage::PlacedFusion both = place({product, sums});
    if (!both.decision) return both.decision;
    if (!stage::is_gemm(both) || stage::is_chain(both))
      return Decision::no("gemm-family", "the dot would lose its template");
    return is_closed({product, sums});
  }
};

}  // namespace

Result<bool> merge_column_sums(OpenCover& cover, const Context& context) {
  return visit_groups<SumMerger>(cover, context);
}

}  // namespace heddle::fuse
