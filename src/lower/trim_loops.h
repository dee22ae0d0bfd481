// Private to trim: loops that run over several dynamic dimensions in one.
#pragma once

#include "kernel/kernel.h"
#include "lower/trim.h"

namespace heddle::lower::trimming {

// A loop over the rows of all sequences, where both may be fewer than their bounds, becomes a loop
// over the sequences and one over the rows of one: each stops at its own extent then.
void split_loops(kernel::Kernel* kernel, const TrimRequest& request);

}  // namespace heddle::lower::trimming
