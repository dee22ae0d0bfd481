// Private to fuse: covers what the greedy cover made of the memory-bound rest anew, by search
// (FusionStitching; fusion.md §1.8).
#pragma once

#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "fuse/groups.h"
#include "fuse/patterns.h"

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
  SearchReport report;
};

// Groups around dots, convolutions and windows, and those that are done once, stay as they are
// (`stays`). The rest is searched; wherever the parts found are not predicted to be faster than the
// basic groups in their place, these stay too. So the result is never predicted to be slower.
Explored explore(const Basic& basic, const target::Target& target,
                 const std::function<bool(const Group&)>& stays, const SearchOptions& options);

// Sums up what several computations took.
void add_report(const SearchReport& from, SearchReport* to);

}  // namespace heddle::fuse
