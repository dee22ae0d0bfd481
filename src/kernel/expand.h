// Kernels with tables as kernels without: what the interpreter runs.
#pragma once

#include "kernel/kernel.h"

namespace heddle::kernel {

// A phase that goes in order becomes one for each row. Each row of a table becomes a group of its
// own, in which the inner kernel's dimensions are numbers; global buffers stay as they are.
// Precondition: verified, and the inner kernels' buffers are flat or of the extents that the rows'
// buffers have.
Kernel expand_tables(const Kernel& kernel);

}  // namespace heddle::kernel
