// Which inputs of a kernel are tables, of which it reads only the rows that other inputs name.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

// Numbers of the global buffers that are only read, all of whose loads have an index that was
// itself loaded; ascending.
std::vector<int64_t> gathered_inputs(const Kernel& kernel);

}  // namespace heddle::kernel
