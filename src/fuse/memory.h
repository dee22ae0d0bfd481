// Private to fuse: memory for temporaries that a cover needs, in any order of execution.
#pragma once

#include <functional>
#include <vector>

#include "hlo/module.h"

namespace heddle::fuse {

// Kernels, and the values that they pass to one another.
struct MemoryGraph {
  struct Value {
    int64_t bytes = 0;
    int maker = -1;            // node
    std::vector<int> readers;  // nodes
    int over = -1;             // the value that its maker may overwrite with it; -1: none
  };
  int nodes = 0;
  std::vector<Value> values;
};

// `nodes_of`: the nodes that an instruction is part of: none for views, arguments and values
// computed from constants alone; several if each computes it again. Results for the caller are not
// temporaries.
using NodesOf = std::function<const std::vector<int>&(const hlo::Instr*)>;
MemoryGraph memory_graph(const hlo::Computation& computation, int nodes, const NodesOf& nodes_of);

// By node: bytes of its inputs and outputs, and of values made before it and read after it. Takes
// quadratic time; empty for more than kMostMemoryNodes nodes.
inline constexpr int kMostMemoryNodes = 2048;
std::vector<int64_t> live_bytes(const MemoryGraph& graph);

}  // namespace heddle::fuse
