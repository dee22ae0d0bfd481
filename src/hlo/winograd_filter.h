// The custom call for a filter stored transformed for Winograd's algorithm, with the original
// filter as its value. Its operand U is f32[t,t,panel,c,width] with t = m + 2, which holds G·w·Gᵀ
// for every pair of channels, output channels in panels; its value is w as f32[3,3,c,features]. F(m
// x m, 3x3) is supported for m = 2 and m = 4.
#pragma once

#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr std::string_view kWinogradFilter = "heddle.winograd_filter";

// The number m of outputs along a side of a tile; 0: another instruction, or another form.
inline int64_t winograd_filter(const Instr& instr) {
  if (!instr.is(Opcode::custom_call) || instr.operands().size() != 1 || !instr.called().empty() ||
      instr.attrs_as<CustomCallAttrs>().custom_call_target != kWinogradFilter)
    return 0;
  const tensor::Shape &from = instr.operand(0)->shape(), &to = instr.shape();
  if (!from.is_array() || !to.is_array() || from.rank() != 5 || to.rank() != 4 ||
      from.type() != tensor::Type::f32 || to.type() != tensor::Type::f32 || !from.is_static() ||
      !to.is_static())
    return 0;
  const int64_t points = from.dim(0);
  const bool known = (points == 4 || points == 6) && from.dim(1) == points;
  if (!known || to.dim(0) != 3 || to.dim(1) != 3 || to.dim(2) != from.dim(3) || from.dim(4) < 1 ||
      to.dim(3) > from.dim(2) * from.dim(4))
    return 0;
  return points - 2;
}

}  // namespace heddle::hlo
