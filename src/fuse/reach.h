// Private to fuse: reachability in a graph in which nothing is joined yet.
//
// Vertices are numbered so that producers come before consumers. Reachability is kept in a band:
// for each vertex only for the numbers around it, so that memory and time grow with the graph and
// not with its square. A pattern spans less than kSpan numbers; two that overlap span less than
// twice that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuse/graph.h"

namespace heddle::fuse {

// A set of vertices with close numbers: words of bits from `first_word` on.
class Band {
 public:
  void add(int vertex);
  bool has(int vertex) const;
  void unite(const Band& other);
  // Restricts `other` to bits in [low, high], rounded to words.
  void unite(const Band& other, int low, int high);
  bool is_empty() const { return words_.empty(); }
  // A vertex that is in both, and not in `without` (a sorted list); -1: none.
  static int common(const Band& a, const Band& b, const std::vector<int>& without);

 private:
  void cover(int first_word, int end_word);
  int first_word_ = 0;
  std::vector<uint64_t> words_;
};

constexpr int kSpan = 4096;

class Reach {
 public:
  explicit Reach(const Graph& graph);
  // The vertices that lead to it, at most kSpan numbers before it, and the ones that it leads to,
  // at most twice as many after it; both include the vertex itself.
  const Band& ancestors(int vertex) const { return ancestors_[static_cast<size_t>(vertex)]; }
  const Band& descendants(int vertex) const { return descendants_[static_cast<size_t>(vertex)]; }

 private:
  std::vector<Band> ancestors_, descendants_;
};

}  // namespace heddle::fuse
