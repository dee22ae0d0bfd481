// Private to fuse: the dependence graph, with numbered vertices and an edge for each value, each
// control edge, and from each effect to the next. All questions of fuse about order and cycles are
// answered on such a graph (kernel_order.h, reach.h).
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
  // Between existing vertices. Adding an edge that exists, or removing one that does not, has no
  // effect.
  void add_edge(int before, int after);
  void remove_edge(int before, int after);
};

// The graph of a computation: one vertex per instruction, in the computation's order.
class InstrGraph {
 public:
  explicit InstrGraph(const hlo::Computation& computation);
  int vertex(const hlo::Instr* instr) const { return vertex_.at(instr); }
  Graph graph;

 private:
  std::unordered_map<const hlo::Instr*, int> vertex_;
};

// For each instruction with an effect, the previous one. Effects keep their order.
std::unordered_map<const hlo::Instr*, hlo::Instr*> effects_before(
    const hlo::Computation& computation);

// For kernels made of a computation's instructions: by kernel, the kernels that it waits for.
// `kernel_of`: the kernel that computes an instruction for all its readers; -1: none, because each
// of its readers computes it again (and waits for its operands).
std::vector<std::vector<int>> waits_of(const hlo::Computation& computation,
                                       const std::vector<std::vector<hlo::Instr*>>& kernels,
                                       const std::function<int(const hlo::Instr*)>& kernel_of);

// A topological order of 0, 1, …: each number follows the ones in its list in `before`; of the
// possible next ones, the one with the least key comes first. Numbers on a cycle, or after one, are
// left out.
std::vector<int> in_order(const std::vector<std::vector<int>>& before,
                          const std::vector<size_t>& key);

}  // namespace heddle::fuse
