// Private to fuse: which kernel must run before which, while kernels are joined: the one test for
// cycles.
//
// Kernels are sets of a graph's vertices. Every kernel has a place, behind those of all that must
// run before it, so a path from one to another leads through places between theirs and the search
// for one stays there; joining kernels moves only what depends on one of them in between (a dynamic
// topological order, Pearce and Kelly's).
#pragma once

#include <optional>
#include <vector>

#include "fuse/graph.h"

namespace heddle::fuse {

class KernelOrder {
 public:
  // Every vertex is a kernel. The graph outlives this; edges that it gets later lead from kernels
  // to ones behind them.
  explicit KernelOrder(const Graph& graph);
  // The sets of `joined` are kernels, and every other vertex is one. None: they have a cycle.
  static std::optional<KernelOrder> of(const Graph& graph, const std::vector<Members>& joined);

  // Kernels have the numbers of one of their vertices.
  int kernel(int vertex) const { return kernel_[static_cast<size_t>(vertex)]; }
  const std::vector<int>& members(int kernel) const {
    return members_[static_cast<size_t>(kernel)];
  }
  int place(int kernel) const { return place_[static_cast<size_t>(kernel)]; }

  // If they were one: would a path lead out of it and back? (That one of them reads another is no
  // cycle, unless a third stands on another path.)
  bool makes_cycle(const std::vector<int>& kernels) const;
  bool leads_to(int from, int to) const;  // at once, or through others
  // They become one, which has the number of the first. makes_cycle(kernels) was false: if not, no
  // answer counts from here on (rebuild.h finds the cycle).
  int unite(const std::vector<int>& kernels);

  // Kernels that read this one's values or wait for it, or that it waits for; each once.
  std::vector<int> readers(int kernel) const { return neighbours(kernel, true); }
  std::vector<int> feeders(int kernel) const { return neighbours(kernel, false); }

 private:
  KernelOrder(const Graph& graph, const std::vector<Members>& joined);
  std::vector<int> neighbours(int kernel, bool forward) const;
  // What the row leads to (or what leads to it) in places between `low` and `high`; false: a path
  // leads back to the row.
  bool reach(const std::vector<int>& row, bool forward, int low, int high,
             std::vector<int>* found) const;

  const Graph* graph_;
  std::vector<int> kernel_;                // by vertex
  std::vector<std::vector<int>> members_;  // by kernel; empty: joined another one
  std::vector<int> place_;                 // by kernel
  // Scratch of reach(): which search saw a kernel last. So not even reading is thread-safe.
  mutable std::vector<int> seen_;
  mutable int search_ = 0;
};

// Would these kernels, and every other vertex by itself, have an order? By a whole pass.
inline bool is_acyclic(const Graph& graph, const std::vector<Members>& joined) {
  return KernelOrder::of(graph, joined).has_value();
}

}  // namespace heddle::fuse
