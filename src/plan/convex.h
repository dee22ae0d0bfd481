// Partitions an acyclic graph into regions of nodes with equal labels such that the graph of
// regions is acyclic, too.
#pragma once

#include <cstddef>
#include <vector>

namespace heddle::plan {

// `before[n]`: direct predecessors of node n; `label[n]`: nodes may share a region if their labels
// are equal and not negative. Returns the region of each node; regions are numbered in topological
// order. The regions are maximal: no two adjacent ones of equal label could be merged.
std::vector<size_t> convex_regions(const std::vector<std::vector<size_t>>& before,
                                   const std::vector<int>& label);

}  // namespace heddle::plan
