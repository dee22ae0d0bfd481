#include "opt/pull_layout.h"

#include <algorithm>

namespace heddle::opt {
namespace {

constexpr size_t kMostMembers = 64;

// The dimensions of a reshape's operand, for its result to be in `order`.
std::optional<Ints> before_reshape(const Instr* x, const Ints& order) {
  const Ints from = x->operand(0)->shape().extents(), to = x->shape().extents();
  const std::vector<ReshapePiece> pieces = reshape_pieces(from, to);
  Ints result;
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t d = order[i];
    const auto piece =
        std::find_if(pieces.begin(), pieces.end(), [&](const ReshapePiece& candidate) {
          return candidate.to_begin <= d && d < candidate.to_end;
        });
    if (piece == pieces.end() || piece->from_begin == piece->from_end) continue;
    if (d != piece->to_begin) return std::nullopt;  // a part of it elsewhere
    for (; i + 1 < order.size() && order[i] + 1 < piece->to_end; ++i)
      if (order[i + 1] != order[i] + 1) return std::nullopt;
    if (order[i] + 1 != piece->to_end) return std::nullopt;
    for (int64_t f = piece->from_begin; f < piece->from_end; ++f) result.push_back(f);
  }
  for (int64_t f = 0; f < static_cast<int64_t>(from.size()); ++f)  // extents of 1
    if (!contains(result, f)) result.push_back(f);
  return result;
}

// Positions along one dimension, by one list of them.
bool is_take(const Instr* x) {
  const auto& attrs = x->attrs_as<hlo::GatherAttrs>();
  return x->operand(1)->shape().rank() == 1 && x->shape().rank() == x->operand(0)->shape().rank() &&
         attrs.start_index_map.size() == 1 && attrs.collapsed_slice_dims == attrs.start_index_map;
}

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
      const bool follows = i == lead->operand || is_elementwise(x) || x->is(Opcode::concatenate);
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
  if (is_elementwise(x)) {
    for (size_t i = 0; i < x->operands().size(); ++i)
      if (x->operand(i)->shape().rank() == x->shape().rank()) return Lead{i, order};
    return std::nullopt;
  }
  switch (x->opcode()) {
    case Opcode::concatenate:
    case Opcode::pad:
    case Opcode::reverse:
    case Opcode::slice:
      return Lead{0, order};
    case Opcode::gather:
      return is_take(x) ? std::optional<Lead>({0, order}) : std::nullopt;
    case Opcode::reshape:
      if (std::optional<Ints> before = before_reshape(x, order)) return Lead{0, *before};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<Region> pull_layout(Instr* value, const Ints& order, const IsFree& is_free) {
  return Puller(is_free).run(value, order);
}

}  // namespace heddle::opt
