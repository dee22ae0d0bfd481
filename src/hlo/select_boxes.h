// The custom call that suppresses overlapping boxes (tensor/box_selection.h). Operands: boxes,
// scores, s64[3] (most of a class; centred; whether there is a least score), and as scalars the
// most shared and the least score. Result: (s64[n,3], s64[]): rows of image, class and box, as many
// as the second one says; the others are zeros. A sixth operand, s32[], may say how many boxes there
// are; those behind it are not looked at.
#pragma once

#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr std::string_view kSelectBoxes = "heddle.select_boxes";

inline bool is_select_boxes(const Instr& instr) {
  return instr.is(Opcode::custom_call) &&
         instr.attrs_as<CustomCallAttrs>().custom_call_target == kSelectBoxes && instr.operands().size() >= 5;
}

}  // namespace heddle::hlo
