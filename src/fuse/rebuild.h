// Private to fuse: turns covers into fusions.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "fuse/groups.h"
#include "fuse/refusal.h"

namespace heddle::fuse {

struct GroupCover {
  std::vector<Group*> groups;
  std::unordered_set<const Instr*> copies;  // in every reader's group, and nowhere else
};

// Replaces a computation by one in which every group is a fusion instruction; control edges connect
// these. A member that is not a copy and is read outside becomes an output. No (kInternalCycle):
// groups wait for one another, and nothing has changed.
Decision rebuild(const Covered& covered, const GroupCover& cover);

// The same with the first of the covers that has an order; if none has, with a kernel for every
// operator. Refusals name the covers without an order.
void rebuild_first(const Covered& covered, const std::vector<const GroupCover*>& covers,
                   std::vector<Refusal>* refusals);

}  // namespace heddle::fuse
