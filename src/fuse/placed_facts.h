// Private to fuse: what schedule::place() makes of instructions as one kernel. Asked once for all
// sets of instructions that differ in names only: layers and steps are many times the same.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "fuse/groups.h"

namespace heddle::fuse {

struct Facts {
  Decision decision = Decision::yes();  // what follows is of those that can be placed
  bool is_gemm = false, is_chain = false, is_template = false;
  int windows = 0;          // schedule::count_windows
  int64_t strided = 0;      // elements that move across the lanes
  int64_t uses_across = 0;  // of templates: schedule::uses_across
  size_t stages = 0;
  bool reduces = false;       // a stage does
  bool is_packing = false;    // maps over one box
  int64_t tasks = 1;          // trips of its loops
  int64_t elems = 0;          // of the largest stage, each as often as it is summed up
  double traffic_ns = 0;      // where asked for
  double shared_sets_ns = 0;  // schedule::shared_sets_ns
};

class PlacedFacts {
 public:
  PlacedFacts(const target::Target& target, bool with_traffic)
      : target_(target), with_traffic_(with_traffic) {}

  // `members` in the computation's order; `leaves`: who is an output, at least one. Reasons speak
  // of the members by their names.
  Facts of(const std::vector<Instr*>& members, const std::function<bool(const Instr*)>& leaves);
  Facts of_alone(Instr* instr);

 private:
  struct Hash {
    size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
  };

  const target::Target& target_;
  const bool with_traffic_;
  std::unordered_map<Hash128, Facts, Hash> known_;  // reasons with numbers for names
};

}  // namespace heddle::fuse
