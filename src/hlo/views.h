// Views: the bytes of their operand with another shape. No kernel computes them.
#pragma once

#include "hlo/module.h"

namespace heddle::hlo {

// A reshape or bitcast between arrays of known extents and one element type, both row-major.
bool is_view(const Instr* instr);

// The value with all views stripped.
const Instr* behind_views(const Instr* value);
Instr* behind_views(Instr* value);

// A view or a tuple element; and the value with both stripped.
bool is_view_or_element(const Instr* instr);
const Instr* behind_views_and_elements(const Instr* value);

}  // namespace heddle::hlo
