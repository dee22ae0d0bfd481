// Which values are uniform and which vary over lanes.
#pragma once

#include <vector>

#include "kernel/kernel.h"

namespace heddle::kernel {

// By ExprId and VarId: 0 is uniform, W varies over W lanes. Varying are the variable of a vector or
// thread loop, reads of a reg or fragment buffer with lanes, and values computed from these; lane()
// is uniform. Nodes and variables that no statement reaches are 0. Where the lanes of operands
// disagree (verify refuses that) the larger number is given.
struct LaneWidths {
  std::vector<int> expr, var;
};
LaneWidths lane_widths(const Kernel& kernel);

inline bool is_lane_loop(LoopKind kind) {
  return kind == LoopKind::vector || kind == LoopKind::thread;
}

// The nodes that `roots` reach, each once, operands before users.
std::vector<ExprId> reachable(const Kernel& kernel, const std::vector<ExprId>& roots);
// Whether lanes read each other: then all must be active, so the extent is a multiple of their
// number.
bool lanes_work_together(const Kernel& kernel, const std::vector<Stmt>& body);

}  // namespace heddle::kernel
