// Private to stitch: a kernel of rows, made with the threads of a subgroup or block as lanes,
// becomes one of blocks (kernel/blocks.h), step by step.
#pragma once

#include "stitch/stitcher.h"

namespace heddle::stitch {

// Vector loops become loops over threads, at most one iteration a thread: longer ones are cut.
void cut_into_threads(kernel::Kernel* kernel, int lanes);
// Scratch that each thread reads only where it wrote itself becomes its registers (hold.cc).
void hold_in_registers(kernel::Kernel* kernel, int lanes);
// Tasks of subgroups share blocks; what a block's subgroups would all store, the first one does.
void make_blocks(kernel::Kernel* kernel, int lanes);
// Barriers where one thread reads or overwrites what another one wrote or reads (barriers.cc).
void add_barriers(kernel::Kernel* kernel);

Stitched stitch_blocks(const schedule::PlacedFusion& placed, const std::string& name,
                       const target::Target& target);

}  // namespace heddle::stitch
