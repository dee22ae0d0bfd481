// Rows that begin in the middle of a line and are stored past the caches: only whole aligned
// vectors can go there, so a sweep takes what stands before its first line as a part of a vector.
#pragma once

#include "kernel/kernel.h"

namespace heddle::stitch {

// Cuts the vector loops of a group's tasks that stream rows which begin anywhere in a line.
void start_at_lines(kernel::Kernel* kernel, kernel::Group* group);

}  // namespace heddle::stitch
