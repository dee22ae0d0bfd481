// Private to fuse: the worth of a pattern of a computation, and whether there is code for it.
#pragma once

#include <map>
#include <unordered_map>

#include "cost/delta.h"
#include "fuse/patterns.h"
#include "fuse/placed_facts.h"
#include "fuse/search_space.h"

namespace heddle::fuse {

// A set of instructions, judged as one kernel.
struct Judged {
  bool builds = false;
  double ns = 0;        // by the latency evaluator; if it does not build: by the delta evaluator
  double delta_ns = 0;  // by the delta evaluator
};

// Gains are by the delta evaluator (cost/delta.h); `facts` says what can be built, and its time by
// the latency evaluator.
class PatternJudge : public Evaluator {
 public:
  PatternJudge(const SearchSpace& space, const target::Target& target, PlacedFacts* facts,
               Pricing pricing);

  double gain(const Members& members) override;
  bool can_build(const Members& members) override;
  bool pays(const Members& whole, const Members& a, const Members& b) override;
  uint64_t packing_class(const Members& members) override;

  const Judged& judge(const Members& members);
  // Judges a group as it is, with its copies.
  Judged judge(const Group& group);
  // The number of schedules that were requested.
  int64_t placements() const { return facts_.placements() - placed_before_; }

 private:
  cost::Work work_of(const Members& members) const;
  void add_reads(const Instr* instr, const Members& members, std::unordered_set<const Instr*>* read,
                 cost::Work* work) const;
  double alone_ns(int vertex);
  Judged judge(const std::vector<Instr*>& instrs, const std::function<bool(const Instr*)>& leaves,
               double delta_ns);

  const SearchSpace& space_;
  const target::Target& target_;
  PlacedFacts& facts_;
  const Pricing pricing_;
  cost::DeltaEvaluator delta_;
  std::unordered_map<int, double> alone_;
  std::map<Members, Judged> by_members_;
  const int64_t placed_before_;
};

}  // namespace heddle::fuse
