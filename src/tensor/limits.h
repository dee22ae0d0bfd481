// Limits on values, defined once for all inputs of the program.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace heddle::tensor {

// Dimensions of an array. numpy has as many; no model comes near it.
inline constexpr int64_t kMaxRank = 64;

// The memory available to this process: the smallest of physical memory with swap, its control
// group's limit and its resource limits. Read once; INT64_MAX if unknown.
int64_t memory_limit_bytes();

// A machine error if `bytes` exceed that; `what` names the value that needs them.
Status check_memory(std::string_view what, int64_t bytes);

}  // namespace heddle::tensor
