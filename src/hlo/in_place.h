// Boxes and rows that a fusion stores where they belong: a dynamic-update-slice or a scatter at the
// fusion's end whose array is memory that it changes in part. All else of the array stays as it is,
// so the result must lie where the array does.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/module.h"

namespace heddle::hlo {

// The update's array (of scatters one into the result of the other: the first one's) is a parameter
// of the fusion that nothing else in it reads, and the update is an output that nothing in it
// reads: a fact (facts.h), which passes keep.
bool is_in_place(const Instr& update);
void set_in_place(Instr* update);

// By leaf of the fusion's root: the number of the parameter that it is put into; -1: none.
std::vector<int64_t> updated_parameters(const Computation& fusion);

// Bytes of a fusion's results, of boxes in place those that are stored.
int64_t stored_bytes(const Instr& fusion);

}  // namespace heddle::hlo
