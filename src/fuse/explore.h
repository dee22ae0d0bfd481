// Private to fuse: covers what the greedy cover made of the memory-bound rest anew, by search
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

// What a cover is made from: instructions in order, and the groups that a basic fusion made.
struct Basic {
  const Covered* covered = nullptr;
  std::vector<Group*> groups;
  std::unordered_set<const Instr*> copies;  // in every reader's group, and nowhere else
};

struct Explored {
  std::vector<Group*> groups;                // all, those that stay among them
  std::vector<std::unique_ptr<Group>> made;  // owns the new ones
  std::unordered_set<const Instr*> copies;
  Decision decision = Decision::yes();  // no: a check of the search's own failed (kInternalCycle)
  SearchReport report;
};

// Groups around dots, convolutions and windows, and those that are done once, stay as they are
// (`stays`). Of the rest is searched what may gain more than its search takes; wherever the parts
// found are not predicted to be clearly faster than the basic groups in their place (more of them:
// faster by more than the evaluator errs, search_options.h), these stay too. So the result is never
// predicted to be slower. Kernels are counted as the cover has them: form_composites may give some
// of them one launch later, as phases that keep the schedules found here. `facts`: of the same
// target; what the basic fusion asked for is known.
Explored explore(const Basic& basic, const target::Target& target, PlacedFacts* facts,
                 const std::function<bool(const Group&)>& stays, const SearchOptions& options);

// Sums up what several computations took.
void add_report(const SearchReport& from, SearchReport* to);

}  // namespace heddle::fuse
