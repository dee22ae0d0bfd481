#include "hlo/sort_order.h"

namespace heddle::hlo {

std::optional<SortOrder> sort_order(const Instr& instr) {
  if (!instr.is(Opcode::sort) || !instr.attrs_as<SortAttrs>().is_stable) return std::nullopt;
  const Instr* root = instr.called().at(0)->root();
  if (!root->is(Opcode::compare) || !root->operand(0)->is(Opcode::parameter) ||
      !root->operand(1)->is(Opcode::parameter))
    return std::nullopt;
  const auto& attrs = root->attrs_as<CompareAttrs>();
  const bool strict = attrs.direction == Direction::lt || attrs.direction == Direction::gt;
  const int64_t a = root->operand(0)->parameter_number(), b = root->operand(1)->parameter_number();
  if (!strict || attrs.type == CompareType::total_order || a / 2 != b / 2 || a == b)
    return std::nullopt;
  return SortOrder{static_cast<size_t>(a / 2), (attrs.direction == Direction::gt) == (a < b)};
}

int64_t sorted_dimension(const Instr& sort) {
  const int64_t d = sort.attrs_as<SortAttrs>().dimension;
  return d < 0 ? d + sort.operand(0)->shape().rank() : d;
}

}  // namespace heddle::hlo
