// How a sort orders its elements, where its comparator says no more than that one operand's
// elements ascend or descend.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::hlo {

struct SortOrder {
  size_t key = 0;  // operand
  bool descending = false;
};

// None: another instruction, a sort that is not stable, or one by anything else. Floats are
// compared as numbers, so that an infinity that comes last comes behind NaNs, too.
std::optional<SortOrder> sort_order(const Instr& instr);
// The dimension that a sort works along, from 0.
int64_t sorted_dimension(const Instr& sort);

}  // namespace heddle::hlo
