// Private to fuse: the order of kernels while kernels are joined, and the one test for cycles.
//
// Kernels are sets of a graph's vertices. The place of every kernel is after the places of all
// kernels that must run before it, so a path from one to another passes through places between
// theirs, and the search for one stays there; joining kernels moves only kernels in between that
// depend on one of them, or that one depends on (a dynamic topological order, Pearce and Kelly's).
#pragma once

#include <optional>
#include <vector>

#include "fuse/graph.h"

namespace heddle::fuse {

class KernelOrder {
 public:
  // Every vertex is a kernel. The graph must outlive this; edges that it gets later must lead to
  // kernels at later places.
  explicit KernelOrder(const Graph& graph);
  // The sets of `joined` are kernels, and every other vertex is one. None: they have a cycle.
  static std::optional<KernelOrder> of(const Graph& graph, const std::vector<Members>& joined);

  // The number of a kernel is that of one of its vertices.
  int kernel(int vertex) const { return kernel_[static_cast<size_t>(vertex)]; }
  const std::vector<int>& members(int kernel) const {
    return members_[static_cast<size_t>(kernel)];
  }
  int place(int kernel) const { return place_[static_cast<size_t>(kernel)]; }

  // Whether, if these were one kernel, a path would lead out of it and back. (That one of them
  // reads another is no cycle, unless another path leads through a third.)
  bool makes_cycle(const std::vector<int>& kernels) const;
  bool leads_to(int from, int to) const;  // directly, or through others
  // Makes them one kernel, which has the number of the first. makes_cycle(kernels) must be false:
  // otherwise no answer is reliable from here on (rebuild.h finds the cycle).
  int unite(const std::vector<int>& kernels);

  // Kernels that read this one's values or wait for it, or that it waits for; each once.
  std::vector<int> readers(int kernel) const { return neighbours(kernel, true); }
  std::vector<int> feeders(int kernel) const { return neighbours(kernel, false); }

 private:
  KernelOrder(const Graph& graph, const std::vector<Members>& joined);
  std::vector<int> neighbours(int kernel, bool forward) const;
  // Finds the kernels that the row leads to (or that lead to it) in places between `low` and
  // `high`; false: a path leads back to the row.
  bool reach(const std::vector<int>& row, bool forward, int low, int high,
             std::vector<int>* found) const;

  const Graph* graph_;
  std::vector<int> kernel_;                // by vertex
  std::vector<std::vector<int>> members_;  // by kernel; empty: joined another one
  std::vector<int> place_;                 // by kernel
  // Working memory of reach(): the last search that saw a kernel. So not even reading is
  // thread-safe.
  mutable std::vector<int> seen_;
  mutable int search_ = 0;
};

// Whether these kernels, and every other vertex as a kernel, have an order. Takes a pass over the
// graph.
inline bool is_acyclic(const Graph& graph, const std::vector<Members>& joined) {
  return KernelOrder::of(graph, joined).has_value();
}

}  // namespace heddle::fuse
