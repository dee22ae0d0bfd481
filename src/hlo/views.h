// Views: other shapes of the bytes of their operand. No kernel makes them.
#pragma once

#include "hlo/module.h"

namespace heddle::hlo {

// A reshape or bitcast between arrays of known extents and one element type, both row-major.
bool is_view(const Instr* instr);

// What a value is a view of, through any number of views.
const Instr* behind_views(const Instr* value);
Instr* behind_views(Instr* value);

// A view, or an element of a tuple; and what is behind them.
bool is_view_or_element(const Instr* instr);
const Instr* behind_views_and_elements(const Instr* value);

}  // namespace heddle::hlo
