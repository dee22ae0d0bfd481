// In-place updates by a fusion: a dynamic-update-slice or a scatter at the fusion's end that
// changes part of an existing array. The rest of the array keeps its contents, so the result must
// share the array's memory.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

// The updated array (for chained scatters the first one's) is a parameter of the fusion that
// nothing else in it reads, and the update is an output that nothing in it reads. A fact (facts.h),
// which passes keep.
bool is_in_place(const Instr& update);
void set_in_place(Instr* update);

// For each leaf of the fusion's root: the number of the parameter that it updates; -1: none.
std::vector<int64_t> updated_parameters(const Computation& fusion);

// Bytes of a fusion's results; for in-place updates only the bytes stored.
int64_t stored_bytes(const Instr& fusion);

}  // namespace heddle::hlo
