#include "opt/pull_layout.h"

#include <algorithm>

#include "opt/follow_layout.h"

namespace heddle::opt {
namespace {

using hlo::DimKind;
using hlo::DimLink;

constexpr size_t kMostMembers = 64;

class Puller {
 public:
  explicit Puller(const IsFree& is_free) : is_free_(is_free) {}

  std::optional<Region> run(Instr* value, const Ints& order) {
    if (!include(value, order) || !gains_) return std::nullopt;
    for (const auto& [member, unused] : region_) {
      int64_t outside = 0;
      for (const Instr* user : member->users()) outside += region_.count(user) ? 0 : 1;
      const bool moves = member->is(Opcode::reshape);
      if (outside > (member == value ? 1 : 0) && !moves) return std::nullopt;
    }
    return std::move(region_);
  }

 private:
  bool include(Instr* x, const Ints& order) {
    if (auto known = region_.find(x); known != region_.end()) return known->second == order;
    if (region_.size() >= kMostMembers || !are_static_arrays(x) || x->shape().elems() == 0)
      return false;
    const std::optional<Lead> lead = lead_for(x, order);
    if (!lead) return false;
    region_.emplace(x, order);
    for (size_t i = 0; i < x->operands().size(); ++i) {
      Instr* operand = x->operand(i);
      const hlo::Mapping mapping = opcode_info(x->opcode()).mapping;
      const bool follows =
          i == lead->operand || mapping == hlo::Mapping::same || mapping == hlo::Mapping::join;
      if (!follows || operand->shape().rank() == 0) continue;
      if (!supply(operand, lead->order)) return false;
    }
    return true;
  }

  bool supply(Instr* operand, const Ints& order) {
    if (is_free_(operand, order)) {
      gains_ |= operand->is(Opcode::transpose);
      return true;
    }
    return operand->is(Opcode::transpose) || include(operand, order);
  }

  const IsFree& is_free_;
  Region region_;
  bool gains_ = false;
};

}  // namespace

std::optional<Lead> lead_for(const Instr* x, const Ints& order) {
  size_t k = 0;
  while (k < x->operands().size() && x->operand(k)->shape().rank() == 0) ++k;
  if (k == x->operands().size() || x->is(Opcode::transpose) || x->is(Opcode::bitcast))
    return std::nullopt;
  const hlo::IndexMap map = hlo::index_map(*x, k);
  for (const DimLink& link : map.links) {
    const bool is_moved = link.kind == DimKind::same || link.kind == DimKind::regrouped ||
                          link.kind == DimKind::strided;
    if (!is_moved && !is_take(x)) return std::nullopt;
  }
  // Dimensions that are merged or split stay together, in order.
  Lead lead{k, {}};
  for (size_t i = 0; i < order.size(); ++i) {
    const auto link = std::find_if(map.links.begin(), map.links.end(), [&](const DimLink& each) {
      const Ints seen = seen_in(x, each);
      return !seen.empty() && seen.size() <= order.size() - i &&
             std::equal(seen.begin(), seen.end(), order.begin() + static_cast<int64_t>(i));
    });
    if (link == map.links.end()) {
      if (x->shape().dim(order[i]) != 1 || map.of_result(order[i]) || !x->is(Opcode::reshape))
        return std::nullopt;
      continue;  // an extent of 1 without a counterpart
    }
    for (int64_t d = link->from; d < link->from_end; ++d) lead.order.push_back(d);
    i += seen_in(x, *link).size() - 1;
  }
  for (int64_t d = 0; d < x->operand(k)->shape().rank(); ++d)
    if (!contains(lead.order, d)) lead.order.push_back(d);
  return lead;
}

std::optional<Region> pull_layout(Instr* value, const Ints& order, const IsFree& is_free) {
  return Puller(is_free).run(value, order);
}

}  // namespace heddle::opt
