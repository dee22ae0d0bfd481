// Private to fuse: the graph that the explorer searches, and who reaches whom in it.
//
// Vertices are numbered so that producers come before consumers. Reachability is kept in a band: of
// a vertex, only for the kSpan numbers around it, so that memory and time grow with the graph and
// not with its square. What spans more is no pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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

struct Vertex {
  std::vector<int> producers, consumers;  // each once
  bool can_fuse = true;                   // else it only carries paths
};

struct SearchGraph {
  std::vector<Vertex> vertices;
  int add(std::vector<int> producers, bool can_fuse = true);  // producers exist already
};

constexpr int kSpan = 4096;

class Reach {
 public:
  explicit Reach(const SearchGraph& graph);
  // Vertices at most kSpan away that lead to, or are led to by; the vertex itself among them.
  const Band& ancestors(int vertex) const { return ancestors_[static_cast<size_t>(vertex)]; }
  const Band& descendants(int vertex) const { return descendants_[static_cast<size_t>(vertex)]; }

 private:
  std::vector<Band> ancestors_, descendants_;
};

}  // namespace heddle::fuse
