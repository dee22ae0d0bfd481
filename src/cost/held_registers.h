// Registers of a GPU's thread that hold values from one row of a schedule to another.
#pragma once

#include <vector>

#include "stage/placed.h"

namespace heddle::cost {

// 4-byte registers of a thread by row, while that runs: scratch of which each of the `lanes`
// threads reads what it wrote itself becomes its registers (lower/hold_in_registers.cc). `rows`: of
// one group, in order. `bytes`: adds what all threads together hold so.
std::vector<int> held_registers(const stage::PlacedFusion& placed,
                                const std::vector<const stage::Row*>& rows, int lanes,
                                int64_t* bytes = nullptr);
// Of the lists that a thread has while it looks for the first k of its row; 0: none of its own.
int list_registers(const stage::Stage& stage, const stage::Row& row);

}  // namespace heddle::cost
