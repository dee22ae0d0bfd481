// Makes the call "heddle.first_rows" (symbol.h).
#pragma once

#include <cstdint>
#include <functional>

#include "hlo/builder.h"

namespace heddle::hlo {

// x, of whose dimension 0 only the first n rows are there; n is s32[].
Instr* first_rows(Builder& b, Instr* x, Instr* n);

// What `make` makes of x with a dimension as the outermost one, with the dimensions in their order.
Instr* with_outermost(Builder& b, Instr* x, int64_t dimension,
                      const std::function<Instr*(Instr*)>& make);

}  // namespace heddle::hlo
