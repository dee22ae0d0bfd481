// A convolution moves into the kernel of the pool that reads it (schedule/pooled.h) where that is
// predicted, or measured, to pay. Refusals: the codes of schedule::match_pooled and place_pooled,
// and `pool-recompute`. Context::any_chain: also pools that are predicted to lose a little,
// whatever was measured.
#include <algorithm>

#include "cost/chain_cost.h"
#include "fuse/group_merger.h"
#include "schedule/chain_tuning.h"
#include "schedule/pooled.h"

namespace heddle::fuse {

namespace {

// The predicted loss that the one kernel may have: it is noise, and the product needs no memory.
// The most predicted loss that is still measured.
constexpr double kLeastGain = 0.99, kMostLoss = 1.3;

class PoolMerger : public GroupMerger {
 public:
  PoolMerger(OpenCover* cover, const target::Target& target, bool any)
      : GroupMerger(cover, target), any_(any) {}

  void visit(Group* pools) {
    if (pools->has_dot || pools->once) return;
    Instr* pool = nullptr;
    for (Instr* member : pools->members) {
      if (!member->is(Opcode::reduce_window)) continue;
      if (pool) return;  // several pools: they stay together
      pool = member;
    }
    if (!pool) return;
    Instr* value = pool->operand(0);
    Group* product = product_group(value);
    if (!product || product == pools ||
        std::none_of(product->members.begin(), product->members.end(),
                     [](const Instr* x) { return x->is(Opcode::convolution); }))
      return;
    const Decision decision = may_join(product, pools, value);
    if (!decision) return refuse(value, pool, decision);
    join(product, pools);
    // A chain cannot continue from it: has_gemm stays false.
  }

 private:
  // Only `value` of the convolution's group may be read outside.
  static Decision only_value(const Group& product, const Instr* value) {
    for (const Instr* member : product.members) {
      if (product.copies.count(member)) continue;
      for (const Instr* user : member->users()) {
        if (has(product, user)) continue;
        if (member != value)
          return Decision::no("chain-consumers", "{} reads {} too", user->name(), member->name());
      }
    }
    return Decision::yes();
  }

  Decision may_join(Group* product, Group* pools, const Instr* value) const {
    if (Decision alone = only_value(*product, value); !alone) return alone;
    if (Decision closed = is_closed({product, pools}); !closed) return closed;
    const stage::PlacedFusion placed = place({product, pools});
    if (!placed.decision) return placed.decision;
    if (!stage::is_pooled(placed))
      return Decision::no("gemm-family", "the convolution would lose its template");
    return judge(placed);
  }

  // Measurements take precedence over predictions.
  Decision judge(const stage::PlacedFusion& placed) const {
    if (!any_ && target_.records) {
      const auto found = target_.records->find(schedule::pooled_key(placed));
      if (found != target_.records->end()) {
        if (found->second == schedule::kChainRecord) return Decision::yes();
        if (found->second == schedule::kApartRecord)
          return Decision::no("pool-recompute", "measured: no faster in one kernel");
      }
    }
    const schedule::PooledTime time = schedule::pooled_time(placed, target_);
    if (time.together_ns * (any_ ? 1 / kMostLoss : kLeastGain) > time.apart_ns)
      return Decision::no("pool-recompute", "{:.3g} us in one kernel, {:.3g} us in two",
                          time.together_ns / 1e3, time.apart_ns / 1e3);
    return Decision::yes();
  }

  const bool any_;
};

}  // namespace

Result<bool> merge_pools(OpenCover& cover, const Context& context) {
  return visit_groups<PoolMerger>(cover, context, context.any_chain);
}

}  // namespace heddle::fuse
