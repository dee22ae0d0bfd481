// A concatenation of many arrays as several stages: one a part, which stores it where it belongs.
#pragma once

#include "hlo/module.h"
#include "stage/members.h"

namespace heddle::stage {

// Elsewhere a concatenation is an expression that asks of every element which part it is of; with
// many parts, and lanes that run inside one of them, the asking would be all of the work. No where
// a part is cheaper read through its index map than made first (a slice, a broadcast, ...). With
// `members`, what they read is made already, whatever made it.
bool is_stored_by_parts(const hlo::Instr& instr, const Members* members = nullptr);

}  // namespace heddle::stage
