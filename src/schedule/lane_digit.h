// Which digit of a stage the lanes of a vector run along.
#pragma once

#include <cstdint>
#include <vector>

#include "stage/stage_graph.h"

namespace heddle::schedule {

using stage::Stage;

// How well lanes along `digit` suit the loads: contiguous loads count for it, strided ones against.
int contiguity(const Stage& stage, int digit);
// The first digit that suits them best; -1: none does.
int contiguous_digit(const Stage& stage);

// Of `candidates`, which is not empty, the digit for the lanes of a row that covers `extents` of
// the stage: of a reduction the one that suits its loads best, preferably with at least `lanes`
// elements; of a map the last.
int natural_lane_digit(const Stage& stage, const std::vector<int64_t>& extents,
                       const std::vector<int>& candidates, int lanes);
// The same, or `filling_digit` in its place.
int lane_digit(const Stage& stage, const std::vector<int64_t>& extents,
               const std::vector<int>& candidates, int lanes);
// Where `natural` has fewer than four elements: the digit of at least four times as many (of a
// reduction the one whose neighbours are nearest in memory, of a map the last); else `natural`.
// With three lanes of sixteen a sum would go across the lanes for each result, or accumulators in
// memory would be read before the last store has arrived.
int filling_digit(const Stage& stage, const std::vector<int64_t>& extents, int natural);

}  // namespace heddle::schedule
