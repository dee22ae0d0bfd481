// Private to stitch: dynamic-update-slices stored in place in their array (stage::Output::array).
#pragma once

#include "kernel/kernel.h"
#include "stage/stage_graph.h"

namespace heddle::stitch {

// Offsets the kernel's stores to these outputs by the start of the updated slice, which each group
// computes. The kernel's globals are the graph's inputs, then its outputs.
void put_boxes(const stage::StageGraph& graph, kernel::Kernel* kernel);

}  // namespace heddle::stitch
