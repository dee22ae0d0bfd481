// Private to fuse: what a pattern of a computation is worth, and whether code can be made of it.
#pragma once

#include <map>
#include <unordered_map>

#include "base/hash.h"
#include "cost/delta.h"
#include "fuse/patterns.h"
#include "fuse/search_space.h"

namespace heddle::fuse {

// A set of instructions as a kernel of its own.
struct Judged {
  bool builds = false;
  double ns = 0;        // by the latency evaluator; of what does not build: by the delta evaluator
  double delta_ns = 0;  // by the delta evaluator
  int64_t strided = 0;  // elements moved across the lanes
};

// Gains by the delta evaluator (cost/delta.h); place() says what can be built, and the latency
// evaluator what that takes. Sets of instructions that differ in names only are judged once.
class PatternJudge : public Evaluator {
 public:
  PatternJudge(const SearchSpace& space, const target::Target& target, Pricing pricing);

  double gain(const Members& members) override;
  bool can_build(const Members& members) override;
  bool pays(const Members& whole, const Members& a, const Members& b) override;
  uint64_t packing_class(const Members& members) override;

  const Judged& judge(const Members& members);
  // Of a group as it is, with its copies.
  const Judged& judge(const Group& group);
  int64_t placements() const { return placements_; }

 private:
  cost::Work work_of(const Members& members) const;
  void add_reads(const Instr* instr, const Members& members, std::unordered_set<const Instr*>* read,
                 cost::Work* work) const;
  double alone_ns(int vertex);
  int64_t alone_strided(Instr* instr);
  const Judged& judge(const std::vector<Instr*>& instrs,
                      const std::function<bool(const Instr*)>& leaves, double otherwise_ns);

  const SearchSpace& space_;
  const target::Target& target_;
  const Pricing pricing_;
  cost::DeltaEvaluator delta_;
  std::unordered_map<int, double> alone_;
  std::map<Hash128, Judged> known_;
  std::map<Members, const Judged*> by_members_;
  std::unordered_map<const Instr*, int64_t> strided_;
  int64_t placements_ = 0;
};

// The same for sets of instructions that make the same kernel: opcodes, shapes, attributes, who
// reads whom, what leaves.
Hash128 signature(const std::vector<Instr*>& instrs,
                  const std::function<bool(const Instr*)>& leaves);

}  // namespace heddle::fuse
