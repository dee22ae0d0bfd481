// Private to late: extents of a model's inputs that are sums of others. A mask is as long as what a
// decoder has kept and the tokens that are new together, also where the model calls its dimension
// by a name of its own.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/bounded.h"
#include "api/session.h"

namespace heddle::api {

// Of the extents that all runs so far had: names that are `more` than one other, or two others
// together. None of these others is such a sum. Only `differ` are looked at, which had more than
// one extent.
std::map<std::string, SumOfExtents> sums_among(const std::vector<Extents>& runs,
                                               const std::set<std::string>& differ);

// The sum itself.
int64_t sum_of(const SumOfExtents& sum, const Extents& extents);

}  // namespace heddle::api
