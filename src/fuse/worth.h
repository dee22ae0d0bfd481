// Private to fuse: tells where a search for a better cover can pay for itself.
#pragma once

#include <functional>
#include <vector>

#include "fuse/placed_facts.h"
#include "fuse/search_options.h"

namespace heddle::fuse {

struct RegionGroup {
  Hash128 signature;
  Facts facts;
};

// For each group: true if it may stay as it is. Groups that are connected, directly or through
// views, are a region; all small unconnected ones, which may be packed, are one too. At best a
// region reads its inputs and writes its outputs once, in one call; if that saves less than the
// search costs, it is not searched. A single group that is not small saves nothing at all.
std::vector<bool> groups_without_gain(const std::vector<Group*>& groups,
                                      const target::Target& target, const SearchOptions& options,
                                      const std::function<RegionGroup(Group*)>& judge);

}  // namespace heddle::fuse
