// Loops that count to a constant: how many trips they make.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace heddle::opt {

inline constexpr int64_t kMostCountedTrips = 1 << 16;  // where nothing less is enough

// Of a while whose condition compares an integer of its state with a constant, while the body adds
// a constant to it and it begins at a constant. None: it is no such loop, or makes more than `most`
// trips.
std::optional<int64_t> trip_count(const hlo::Instr* loop, int64_t most);

}  // namespace heddle::opt
