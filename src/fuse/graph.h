// Private to fuse: what must run before what, as numbers: by a value, by a control edge, and of two
// effects the one that stands first. All that fuse asks about order and cycles it asks such a graph
// (kernel_order.h, reach.h).
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace heddle::fuse {

using Members = std::vector<int>;  // vertices, ascending

struct Vertex {
  std::vector<int> producers, consumers;  // each once
  bool can_fuse = true;                   // else it only carries paths
};

struct Graph {
  std::vector<Vertex> vertices;
  int add(std::vector<int> producers, bool can_fuse = true);  // producers exist already
  // Between two that exist; there may be one already, or none.
  void add_edge(int before, int after);
  void remove_edge(int before, int after);
};

// A computation's: a vertex an instruction, in the computation's order.
class InstrGraph {
 public:
  explicit InstrGraph(const hlo::Computation& computation);
  int vertex(const hlo::Instr* instr) const { return vertex_.at(instr); }
  Graph graph;

 private:
  std::unordered_map<const hlo::Instr*, int> vertex_;
};

// By instruction with an effect: the one before it. Effects keep their order.
std::unordered_map<const hlo::Instr*, hlo::Instr*> effects_before(
    const hlo::Computation& computation);

// Kernels that are made of a computation's instructions: by kernel, those that it waits for.
// `kernel_of`: which one makes an instruction for all that read it; -1: none, for it is made again
// by each of its readers (what these need, it needs).
std::vector<std::vector<int>> waits_of(const hlo::Computation& computation,
                                       const std::vector<std::vector<hlo::Instr*>>& kernels,
                                       const std::function<int(const hlo::Instr*)>& kernel_of);

// 0, 1, … so that each stands behind those of its list in `before`; among those that may come next,
// the one with the least key. Those on a cycle, and behind one, are left out.
std::vector<int> in_order(const std::vector<std::vector<int>>& before,
                          const std::vector<size_t>& key);

}  // namespace heddle::fuse
