// A minimum cut: for each of a set of nodes, one of two labels, so that what is paid in all is
// least. Every energy of terms k·x·(1 - y) with k >= 0 has such a graph, and no better labelling
// than the cut (Kolmogorov and Zabih, What energy functions can be minimized via graph cuts?,
// 2004). Dinic's algorithm; costs are integers, so that equal inputs give equal cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::precision {

class MinCut {
 public:
  explicit MinCut(int nodes);
  // Paid where the node is chosen; where it is not. Costs add up, none is negative.
  void pay_if(int node, int64_t cost);
  void pay_unless(int node, int64_t cost);
  // Paid where `a` is chosen and `b` is not.
  void pay_between(int a, int b, int64_t cost);
  // So much that no sum of other costs reaches it.
  static constexpr int64_t kNever = int64_t{1} << 50;

  // Which nodes are chosen: of equal labellings the one that chooses fewest. Once.
  std::vector<bool> solve();

 private:
  struct Arc {
    int to;
    int64_t left;
    size_t back;  // its place in the list of `to`
  };
  void add(int from, int to, int64_t cost);
  bool find_levels();
  int64_t push(int node, int64_t most);

  int source_, sink_;
  std::vector<std::vector<Arc>> arcs_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace heddle::precision
