// Private to stitch: boxes that are stored where they belong in an array (stage::Output::array).
#pragma once

#include "kernel/kernel.h"
#include "stage/stage_graph.h"

namespace heddle::stitch {

// Moves what a kernel stores of such outputs to where the box begins: the kernel's globals are the
// graph's inputs, then its outputs. Each group finds out for itself.
void put_boxes(const stage::StageGraph& graph, kernel::Kernel* kernel);

}  // namespace heddle::stitch
