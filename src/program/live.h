// What of a program's temporaries is alive when.
#pragma once

#include <vector>

#include "program/program.h"

namespace heddle::program {

// Temporaries in the device's memory alive at commands [first, end), by their numbers.
std::vector<const Buffer*> alive(const Program& program, int64_t first, int64_t end);
// Bytes of the arena that they take: values may lie on each other.
int64_t covered_bytes(std::vector<const Buffer*> buffers);

}  // namespace heddle::program
