// Expands kernels with tables into kernels without, which the interpreter runs.
#pragma once

#include "kernel/kernel.h"

namespace heddle::kernel {

// An in-order phase becomes one phase per row. Each row of a table becomes a group, in which the
// inner kernel's dimensions are numbers; global buffers do not change. Precondition: verified, and
// the inner kernels' buffers are flat or have the extents of the rows' buffers.
Kernel expand_tables(const Kernel& kernel);

}  // namespace heddle::kernel
