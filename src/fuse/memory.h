// Private to fuse: memory for temporaries that a cover needs, in whatever order it runs.
#pragma once

#include <functional>
#include <vector>

#include "hlo/module.h"

namespace heddle::fuse {

// Kernels, and what they hand on to one another.
struct MemoryGraph {
  struct Value {
    int64_t bytes = 0;
    int maker = -1;            // node
    std::vector<int> readers;  // nodes
    int over = -1;             // the value that its maker may write it over; -1: none
  };
  int nodes = 0;
  std::vector<Value> values;
};

// `nodes_of`: those that an instruction is part of: none where it is a view, or an argument;
// several where it is computed again in each. What is made of constants alone belongs to none, too.
// What the caller gets is no temporary.
using NodesOf = std::function<const std::vector<int>&(const hlo::Instr*)>;
MemoryGraph memory_graph(const hlo::Computation& computation, int nodes, const NodesOf& nodes_of);

// By node: bytes of what it reads and makes, and of what is made before it and read behind it. At
// most kMostMemoryNodes of them, for it takes the square of their number; none for more.
inline constexpr int kMostMemoryNodes = 2048;
std::vector<int64_t> live_bytes(const MemoryGraph& graph);

}  // namespace heddle::fuse
