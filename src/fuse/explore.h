// Private to fuse: replaces the greedy cover of the memory-bound part by one that is searched
// (FusionStitching, Zheng et al. 2020).
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "fuse/groups.h"
#include "fuse/patterns.h"
#include "fuse/placed_facts.h"

namespace heddle::fuse {

// The input of a cover: instructions in order, and the groups that a basic fusion made.
struct Basic {
  const Covered* covered = nullptr;
  std::vector<Group*> groups;
  std::unordered_set<const Instr*> copies;  // in every reader's group, and nowhere else
};

struct Explored {
  std::vector<Group*> groups;                // all, including the ones that stay
  std::vector<std::unique_ptr<Group>> made;  // owns the new ones
  std::unordered_set<const Instr*> copies;
  Decision decision = Decision::yes();  // no: an internal check failed (kInternalCycle)
  SearchReport report;
};

// Groups for which `stays` holds (around dots, convolutions and windows, or run once) stay as they
// are. Of the rest, the part that may gain more than its search takes is searched; wherever the
// parts found are not predicted to be clearly faster than the basic groups in their place (if they
// are more: faster by more than the evaluator's error, search_options.h), the basic groups stay. So
// the result is never predicted to be slower. Kernels are counted as in the cover: form_composites
// may later give several of them one launch, as phases that keep the schedules found here. `facts`:
// of the same target; it knows what the basic fusion asked for.
Explored explore(const Basic& basic, const target::Target& target, PlacedFacts* facts,
                 const std::function<bool(const Group&)>& stays, const SearchOptions& options);

// Adds up the reports of several computations.
void add_report(const SearchReport& from, SearchReport* to);

}  // namespace heddle::fuse
