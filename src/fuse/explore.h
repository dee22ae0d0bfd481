// Private to fuse: FusionStitching's explorer on a covered computation (fusion.md §1.8).
#pragma once

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
  std::vector<std::unique_ptr<Group>> groups;  // in place of those that were taken apart
  std::vector<Group*> kept;                    // of the basic fusion
  std::unordered_set<const Instr*> copies;
  double gain_ns = 0;        // predicted, against a kernel an operator
  double basic_gain_ns = 0;  // the same of the groups that were taken apart
};

// Groups around dots, convolutions and windows, and those that are done once, stay as they are
// (`stays`); the rest is covered anew by search.
Explored explore(const Basic& basic, const target::Target& target,
                 const std::function<bool(const Group&)>& stays, const SearchOptions& options);

}  // namespace heddle::fuse
