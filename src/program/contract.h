// What compiled code relies on and no table can be checked against: the sizes of what a launch
// hands to it, run-time dimensions, tasks, scratch, and the extents that a program is for. Its hash
// stands beside the code in a file, so that tables which were changed are refused.
#pragma once

#include "base/hash.h"
#include "program/saved.h"

namespace heddle::program {

Hash128 contract_of(const Variant& variant);

}  // namespace heddle::program
