// A concatenation of many arrays as several stages: one per part, which stores it in its place.
#pragma once

#include "hlo/module.h"
#include "stage/members.h"

namespace heddle::stage {

// Otherwise a concatenation is an expression that selects the part for every element; with many
// parts, and lanes inside one of them, the selection would be all of the work. False if a part is
// cheaper to read through its index map than to compute first (a slice, a broadcast, ...). With
// `members`, their inputs count as computed, whatever produced them.
bool is_stored_by_parts(const hlo::Instr& instr, const Members* members = nullptr);

}  // namespace heddle::stage
