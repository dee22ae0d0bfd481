// Partition: assigns the nodes of a flow to device or host, for a device with its own memory.
//
// Design. A capability query returns where each node can run: kernels on the device, operators
// without one on the host, small integer arithmetic (of shapes, counters, predicates) on both, and
// so can nodes that only move bytes. A loop's state and a branch's result are each on one side.
// Values that the host must see are fixed to it: inputs and outputs (the caller's memory),
// predicates and selectors of loops and branches, start indices of updates. The cheapest assignment
// is a minimum cut (cut.h): the least time of copies across the target's link, weighted by trips in
// loops; if the target has no link, the fewest values that cross, then the fewest bytes. A value
// that crosses is copied once, where it is made, however many nodes read it; constants are on both
// sides. The copies are ordinary nodes of the flow, so that order, lifetimes, offsets and streams
// include them, and each storage has a space. The nodes of a region of the flow are divided into
// convex regions of one label (convex.h), whose graph has no cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/flow.h"
#include "target/target.h"

namespace heddle::plan {

enum class Label : uint8_t { device, host, control };

struct Part {
  Label label = Label::device;
  std::vector<NodeId> nodes;
};

// Whether the node is pure arithmetic of small integers, as on shapes, counters and predicates.
bool is_shape_arithmetic(const Node& node);

// Must run before anything else changes the flow. Adds copies, sets spaces, and turns kernels that
// the host is to run into host calls.
void partition(Flow& flow, const target::Target& target);

// The parts of one region of a partitioned flow, in topological order; a copy between the spaces is
// a part of its own (control). Nodes of the once section and of the run are in different parts.
std::vector<Part> parts_of(const Flow& flow, RegionId region);

}  // namespace heddle::plan
