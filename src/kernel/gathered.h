// The inputs of a kernel that are tables, of which it reads only the rows that other inputs name.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

// Numbers of the read-only global buffers all of whose loads have an index computed from loaded
// data; ascending.
std::vector<int64_t> gathered_inputs(const Kernel& kernel);

}  // namespace heddle::kernel
