// Private to mask_padding: concatenated and padded arrays whose parts have padding of their own.
// Parts after the first one with a run-time extent are written where the actual extents before them
// end. An input whose only use is as the first part of one concatenation gets room for the whole
// result, so that this can be done in its memory.
#pragma once

#include "hlo/builder.h"
#include "hlo/dim_classes.h"

namespace heddle::opt {

// Whether the first part is an input that gets room.
bool gets_room(const hlo::DimClasses::Cut& cut);

// `extents`: by symbol, the entry's parameter. If an input gets room, its place in the table moves
// to the symbol of the longer array.
void join_padded(hlo::Computation* entry, const std::vector<hlo::DimClasses::Cut>& cuts,
                 const std::vector<hlo::Instr*>& extents, hlo::SymbolTable* table);

}  // namespace heddle::opt
