// Private to fuse: candidate patterns of every vertex, by FusionStitching's approximate dynamic
// programming. A pattern is a convex set of vertices that would be one kernel.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "fuse/reach.h"
#include "fuse/search_options.h"

namespace heddle::fuse {

// Evaluates patterns. Called once for each set of members.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Nanoseconds saved over one kernel per member. Quick: called for every union.
  virtual double gain(const Members& members) = 0;
  // Whether there is code for it. Slow: called in the order of gains, until enough have code.
  virtual bool can_build(const Members& members) = 0;
  // Whether the whole takes less than its two parts. Both can be built.
  virtual bool pays(const Members&, const Members&, const Members&) { return true; }
  // Patterns without an edge between them may be packed into one kernel if their classes are not 0:
  // they are so small that a saved call counts. Patterns of the same class loop over the same
  // space.
  virtual uint64_t packing_class(const Members&) { return 0; }
};

struct Pattern {
  Members members;
  double gain = 0;
};
using PatternId = int;

class Patterns {
 public:
  // Consumers first; every vertex keeps the best `top` patterns that begin with it, and is alone a
  // candidate for its producers. Unions that are not convex (a value would leave the kernel and
  // come back) are dropped.
  Patterns(const Graph& graph, Evaluator* evaluator, const SearchOptions& options);

  // Patterns of at least two members and with a gain, best first.
  const std::vector<PatternId>& of(int vertex) const {
    return of_vertex_[static_cast<size_t>(vertex)];
  }
  const Pattern& pattern(PatternId id) const { return patterns_[static_cast<size_t>(id)]; }
  size_t size() const { return patterns_.size(); }
  // The pattern of these members, if it is convex, gains something and can be built.
  std::optional<PatternId> consider(Members members) {
    if (static_cast<int>(members.size()) > options_.most_members) return std::nullopt;
    return consider_any(std::move(members));
  }
  // The same without testing whether it can be built, which is slow: builds() does.
  std::optional<PatternId> propose(Members members);
  bool builds(PatternId id);
  // consider(), and adds it to the patterns of its first vertex.
  std::optional<PatternId> offer(Members members);
  // The number of unions considered, and of patterns that the evaluator was asked to build.
  int64_t unions() const { return unions_; }
  int64_t builds() const { return builds_; }
  bool pays(const Members& whole, const Members& a, const Members& b) {
    return evaluator_->pays(whole, a, b);
  }
  uint64_t packing_class(const Members& members) { return evaluator_->packing_class(members); }
  const Reach& reach() const { return reach_; }

 private:
  std::optional<PatternId> consider_any(Members members);
  std::vector<PatternId> reduce(int vertex, const int* begin, const int* end);
  std::vector<PatternId> best_of(std::vector<PatternId> pool);
  std::vector<PatternId> candidates(int consumer);
  std::optional<PatternId> unite(int vertex, PatternId a, PatternId b);
  std::optional<PatternId> with_only_producers(PatternId id);
  PatternId intern(Members members);
  bool is_convex(const Members& members) const;

  const Graph& graph_;
  Evaluator* evaluator_;
  SearchOptions options_;
  Reach reach_;
  std::vector<Pattern> patterns_;
  std::vector<std::optional<bool>> builds_known_;  // by pattern
  std::map<Members, PatternId> known_;
  std::vector<std::vector<PatternId>> of_vertex_;
  int64_t unions_ = 0, builds_ = 0;
};

// A set of patterns without common members and without a cycle among them.
struct Cover {
  std::vector<PatternId> patterns;  // in the order of their first members
  double gain = 0;
};

// Beam search, producers first: at every vertex each plan is extended by each of the vertex's
// patterns, or by none; the best `beam` plans stay, by their gain and the gain still possible. Then
// neighbours are united while that gains: this gives patterns with several first vertices, which
// the published search has only below a virtual producer. Patterns that have only their class in
// common are united too (remote fusion, which becomes packing: the virtual producer of all vertices
// is a neighbour of each). Returns the finalists, best first. Plans whose patterns together have a
// cycle are left out. A large graph may have some, by paths that are too long for Reach; with up to
// 2 * kSpan vertices that is a bug of the search, which `broken` counts.
std::vector<Cover> search_covers(const Graph& graph, Patterns* patterns,
                                 const SearchOptions& options, int* broken = nullptr);

}  // namespace heddle::fuse
