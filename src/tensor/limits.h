// What a value may be: limits that are stated once and hold for every way into the program.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace heddle::tensor {

// Dimensions of an array. numpy has as many; no model comes near it.
inline constexpr int64_t kMaxRank = 64;

// The memory that this process can have: the least of physical memory with swap, its control
// group's limit and its resource limits. Read once; INT64_MAX where nothing tells.
int64_t memory_limit_bytes();

// An error of the machine where `bytes` are more than that; `what` needs them.
Status check_memory(std::string_view what, int64_t bytes);

}  // namespace heddle::tensor
