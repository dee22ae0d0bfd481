// The properties that compiled code relies on and that no table can be checked against: sizes of a
// launch's arguments, run-time dimensions, tasks, scratch, and the extents of the program. A file
// stores their hash with the code, so that changed tables are refused.
#pragma once

#include "base/hash.h"
#include "program/saved.h"

namespace heddle::program {

Hash128 contract_of(const Variant& variant);

}  // namespace heddle::program
