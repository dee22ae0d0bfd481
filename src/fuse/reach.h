// Private to fuse: who reaches whom in a graph in which nothing is joined yet.
//
// Vertices are numbered so that producers come before consumers. Reachability is kept in a band: of
// a vertex, only for the numbers around it, so that memory and time grow with the graph and not
// with its square. A pattern spans less than kSpan numbers; two that overlap span less than twice
// that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuse/graph.h"

namespace heddle::fuse {

// A set of vertices that lie close together: words of bits from `first_word` on.
class Band {
 public:
  void add(int vertex);
  bool has(int vertex) const;
  void unite(const Band& other);
  // Only what of `other` is among [low, high], give or take a word.
  void unite(const Band& other, int low, int high);
  bool is_empty() const { return words_.empty(); }
  // A vertex in both, and in neither of `without` (a sorted list); -1: none.
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
  // Vertices that lead to it, from at most kSpan numbers before it, and that it leads to, at most
  // twice as many behind; the vertex itself is among them.
  const Band& ancestors(int vertex) const { return ancestors_[static_cast<size_t>(vertex)]; }
  const Band& descendants(int vertex) const { return descendants_[static_cast<size_t>(vertex)]; }

 private:
  std::vector<Band> ancestors_, descendants_;
};

}  // namespace heddle::fuse
