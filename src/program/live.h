// Temporaries of a program that are alive at given commands.
#pragma once

#include <vector>

#include "program/program.h"

namespace heddle::program {

// Temporaries in device memory that are alive at some command in [first, end).
std::vector<const Buffer*> alive(const Program& program, int64_t first, int64_t end);
// Bytes of the arena that they cover: values may overlap.
int64_t covered_bytes(std::vector<const Buffer*> buffers);

}  // namespace heddle::program
