// Makes the call "heddle.first_rows" (symbol.h).
#pragma once

#include "hlo/builder.h"

namespace heddle::hlo {

// x, of whose dimension 0 only the first n rows are there; n is s32[].
Instr* first_rows(Builder& b, Instr* x, Instr* n);

}  // namespace heddle::hlo
