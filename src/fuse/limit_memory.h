// Private to fuse: merges (chains, pools, siblings) keep a kernel's inputs until its last result is
// there. Where that would raise the most memory that the computation ever needs, they are undone.
#pragma once

#include <unordered_map>
#include <vector>

#include "fuse/group_merger.h"

namespace heddle::fuse {

class MemoryLimit {
 public:
  // Remembers the groups as they are: their peak is the limit.
  explicit MemoryLimit(const Covered& covered, const Grouped& grouped);
  // Takes those apart, worst first, at which more is alive than the limit. `GroupOrder` is not
  // told: nothing may be merged behind this.
  void restore();

 private:
  std::vector<int64_t> live() const;  // by group
  std::vector<size_t> merged_with(size_t group) const;

  const Covered& covered_;
  const Grouped& grouped_;
  std::vector<Group> before_;
  int64_t limit_ = 0;
};

}  // namespace heddle::fuse
