// Partition: which node of a flow works on the device and which on the host, for a device with a
// memory of its own.
//
// Design. A capability query says of each node where it can run: kernels on the device, operators
// without one on the host, small integer arithmetic (of shapes, counters, predicates) on both, and
// so can what only moves bytes. A loop's state and a branch's result are each on one side. What the
// host must see is fixed to it: inputs and outputs (the caller's memory), what loops and branches
// go by, where boxes begin. Of all sides the cheapest are taken, by a minimum cut (cut.h): the
// least time of copies across the target's link, in loops as often as they go round; where the
// target has no link, the fewest values that cross, of equal ones the fewest bytes. A value that
// crosses is copied once, where it is made, whoever reads it; constants are on both sides. The
// copies are nodes of the flow like others, so that order, lifetimes, offsets and streams see them,
// and each storage has a space. The nodes of a region of the flow fall into convex regions of one
// label (convex.h), whose graph has no cycle.
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

// Pure arithmetic of small integers: what it does with shapes, counters, predicates.
bool is_shape_arithmetic(const Node& node);

// Before anything else is done with the flow. Adds the copies, sets spaces, and makes host calls of
// the kernels that the host is to do.
void partition(Flow& flow, const target::Target& target);

// The parts of one region of a partitioned flow, in an order of their graph; a copy between the
// spaces is a part of its own (control). Nodes of the once section and of the run stay apart.
std::vector<Part> parts_of(const Flow& flow, RegionId region);

}  // namespace heddle::plan
