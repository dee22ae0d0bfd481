// Trip counts of loops that count to a constant.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::opt {

inline constexpr int64_t kMostCountedTrips = 1 << 16;  // for callers without a lower limit

// For a while whose condition compares an integer of its state with a constant, whose body adds a
// constant to it, and which starts at a constant. None: not such a loop, or more than `most` trips.
std::optional<int64_t> trip_count(const hlo::Instr* loop, int64_t most);

}  // namespace heddle::opt
