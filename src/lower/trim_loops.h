// Private to trim: loops that run over a dynamic dimension and others around it in one.
#pragma once

#include "kernel/kernel.h"
#include "lower/trim_request.h"

namespace heddle::lower::trimming {

// A loop over the rows of all sequences becomes a loop over the sequences and one over the rows of
// one: each stops at its own extent then, or runs on where there is none.
void split_loops(kernel::Kernel* kernel, const TrimRequest& request);

}  // namespace heddle::lower::trimming
