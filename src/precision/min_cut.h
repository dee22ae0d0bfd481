// A minimum cut: assigns one of two labels to each node at least total cost. Every energy with
// terms k·x·(1 - y), k >= 0, corresponds to such a graph, and the cut is an optimal labelling
// (Kolmogorov and Zabih, What energy functions can be minimized via graph cuts?, 2004). Dinic's
// algorithm; costs are integers, so that equal inputs give equal cuts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::precision {

class MinCut {
 public:
  explicit MinCut(int nodes);
  // Cost if the node is chosen; cost if it is not. Costs add up; none may be negative.
  void pay_if(int node, int64_t cost);
  void pay_unless(int node, int64_t cost);
  // Cost if `a` is chosen and `b` is not.
  void pay_between(int a, int b, int64_t cost);
  // Larger than any sum of other costs.
  static constexpr int64_t kNever = int64_t{1} << 50;

  // The chosen nodes; of all optimal labellings the one with the fewest. Call only once.
  std::vector<bool> solve();

 private:
  struct Arc {
    int to;
    int64_t left;
    size_t back;  // its index in the list of `to`
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
