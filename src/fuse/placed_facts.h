// Private to fuse: facts about instructions that schedule::place() places as one kernel. They are
// found once for all sets of instructions that differ in names only: layers and steps repeat.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "fuse/groups.h"

namespace heddle::fuse {

struct Facts {
  Decision decision = Decision::yes();  // the rest is valid only if this is yes
  bool is_gemm = false, is_chain = false, is_template = false;
  int windows = 0;          // schedule::count_windows
  int64_t strided = 0;      // elements that move across the lanes
  int64_t uses_across = 0;  // of templates: schedule::uses_across
  int64_t word = 1;         // of templates: elements of k per instruction
  size_t stages = 0;
  bool reduces = false;       // whether a stage reduces
  bool is_packing = false;    // maps over one index space
  int64_t tasks = 1;          // trips of its loops
  int64_t elems = 0;          // of the largest stage: results times reduced elements
  double traffic_ns = 0;      // if requested
  double shared_sets_ns = 0;  // cost::shared_sets_ns
  double ns = 0;              // by the latency evaluator; not of templates
  bool has_tasks = true;      // no reduction for many cores is left to one
};

// A hash that is the same for sets of instructions that make the same kernel: opcodes, shapes,
// attributes, edges, outputs.
Hash128 signature(const std::vector<Instr*>& instrs,
                  const std::function<bool(const Instr*)>& leaves);

// Appends words that distinguish shapes.
void add_shape(const tensor::Shape& shape, std::vector<uint64_t>* words);

class PlacedFacts {
 public:
  PlacedFacts(const target::Target& target, bool with_traffic)
      : target_(target), with_traffic_(with_traffic) {}

  // `members`: in the computation's order; `leaves`: whether a member is an output, at least one
  // is. Reasons name the members.
  Facts of(const std::vector<Instr*>& members, const std::function<bool(const Instr*)>& leaves);
  Facts of_alone(Instr* instr);
  int64_t placements() const { return static_cast<int64_t>(known_.size()); }

 private:
  struct Hash {
    size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
  };

  const target::Target& target_;
  const bool with_traffic_;
  struct Known {
    Facts facts;
    std::vector<Instr*> members;  // that a refusal names
  };
  std::unordered_map<Hash128, Known, Hash> known_;
};

}  // namespace heddle::fuse
