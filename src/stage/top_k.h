// Top-k as a reduction: one pass over the reduced dimension maintains a sorted list of k values and
// their indices. A stage has both values; its last out digit is the position in the list (none if k
// is 1).
#pragma once

#include "stage/schedule.h"
#include "target/target.h"

namespace heddle::stage {

inline constexpr int64_t kMostTopK = 128;

// Whether there is a kernel for the top k of the last dimension of an array of this shape.
bool has_top_k(const tensor::Shape& shape, int64_t k);
// Whether its rows go into lanes, each with its list in registers.
bool has_top_k_in_lanes(const tensor::Shape& shape, int64_t k);
bool is_top_k(const Stage& stage);
bool has_top_k(const StageGraph& graph);
// The out digit that is the position in the list; -1: none.
int list_digit(const Stage& stage);
// Whether the list is short enough for registers: rows go into lanes, if a task has several. Else
// rows are processed one by one, skipping blocks whose greatest value is too small.
bool keeps_list_in_registers(const Stage& stage);
// The loops of its row over `extents`: rows in lanes, or none if rows are processed one by one.
std::vector<Own> top_k_loops(const Stage& stage, const std::vector<int64_t>& extents, int lanes);
// How many elements of an out digit of `anchor` a task should have, a divisor of its extent, so
// that there are rows for the lanes; 1: no list has the digit, or there is no good divisor.
int64_t top_k_rows(const StageGraph& graph, size_t anchor, int digit, const target::Target& target);
// Whether a loop over digit same[i] of every stage i would compute a list in pieces.
bool divides_list(const StageGraph& graph, const std::vector<int>& same);

}  // namespace heddle::stage
