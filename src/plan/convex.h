// Regions of like nodes in an acyclic graph, such that the graph of the regions is acyclic, too.
#pragma once

#include <cstddef>
#include <vector>

namespace heddle::plan {

// `before[n]`: direct predecessors of node n; `label[n]`: like nodes have equal ones, a negative
// one is like no other. By node: its region; regions are numbered in an order in which each stands
// behind those that lead to it. No two regions of one label that an edge joins could be one.
std::vector<size_t> convex_regions(const std::vector<std::vector<size_t>>& before,
                                   const std::vector<int>& label);

}  // namespace heddle::plan
