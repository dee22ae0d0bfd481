// Registers of a GPU's thread that hold values from one row of a schedule to another.
#pragma once

#include <vector>

#include "stage/placed.h"

namespace heddle::cost {

// 4-byte registers of a thread, by row, while that runs: scratch in which each of the `lanes`
// threads reads only what it wrote itself becomes its registers (lower/hold_in_registers.cc).
// `rows`: of one group, in order. `bytes`: is increased by the bytes that all threads together
// hold.
std::vector<int> held_registers(const stage::PlacedFusion& placed,
                                const std::vector<const stage::Row*>& rows, int lanes,
                                int64_t* bytes = nullptr);
// Registers for the list of a thread that looks for the top k of its row; 0: it has no list.
int list_registers(const stage::Stage& stage, const stage::Row& row);

}  // namespace heddle::cost
