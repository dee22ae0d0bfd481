// The custom call for non-maximum suppression (tensor/box_selection.h). Operands: boxes, scores,
// s64[3] (maximum per class; centred; whether there is a minimum score), and as scalars the maximum
// overlap and the minimum score. Result: (s64[n,3], s64[]): rows of image, class and box; the
// second is the number of valid rows, the rest are zeros. An optional sixth operand, s32[], is the
// number of boxes; later ones are ignored.
#pragma once

#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr std::string_view kSelectBoxes = "heddle.select_boxes";

inline bool is_select_boxes(const Instr& instr) {
  return instr.is(Opcode::custom_call) &&
         instr.attrs_as<CustomCallAttrs>().custom_call_target == kSelectBoxes &&
         instr.operands().size() >= 5;
}

}  // namespace heddle::hlo
