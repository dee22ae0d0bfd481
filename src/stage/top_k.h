// Top-k as a reduction: a sorted list of k values and their places goes along the reduced
// dimension, once. A stage has both values; its last out digit is the place in the list (none where
// k is 1).
#pragma once

#include "stage/schedule.h"
#include "target/target.h"

namespace heddle::stage {

inline constexpr int64_t kMostTopK = 128;

// Is there a kernel for the k first of the last dimension of an array of this shape?
bool has_top_k(const tensor::Shape& shape, int64_t k);
// Do its rows go into lanes, each with its list in registers?
bool has_top_k_in_lanes(const tensor::Shape& shape, int64_t k);
bool is_top_k(const Stage& stage);
bool has_top_k(const StageGraph& graph);
// The out digit that is the place in the list; -1: none.
int list_digit(const Stage& stage);
// The list is short enough for registers: rows in lanes, if there are several at a place. Else each
// row by itself: blocks of it whose greatest is too small are passed by.
bool keeps_list_in_registers(const Stage& stage);
// Its row's loops, where `extents` are left: rows in lanes, or none where it is one row alone.
std::vector<Own> top_k_loops(const Stage& stage, const std::vector<int64_t>& extents, int lanes);
// How many elements of an out digit of `anchor` a task should have, a divisor of its extent, so
// that there are rows for the lanes; 1: no list moves along, or there is no good divisor.
int64_t top_k_rows(const StageGraph& graph, size_t anchor, int digit, const target::Target& target);
// Would a loop over digit same[i] of every stage i compute a list in pieces?
bool divides_list(const StageGraph& graph, const std::vector<int>& same);

}  // namespace heddle::stage
