// Private to mask_padding: joined and padded arrays whose parts have padding of their own. Parts
// behind the first one of a run-time extent are put in where those before them end; an input to
// which nothing but one array is joined gets the room for it, so that it can be done in its memory.
#pragma once

#include "hlo/builder.h"
#include "hlo/dim_classes.h"

namespace heddle::opt {

// Whether the first part is an input that gets room.
bool gets_room(const hlo::DimClasses::Cut& cut);

// `extents`: by symbol, the entry's parameter. Where inputs get room, their places in the table
// become those of the longer array's symbol.
void join_padded(hlo::Computation* entry, const std::vector<hlo::DimClasses::Cut>& cuts,
                 const std::vector<hlo::Instr*>& extents, hlo::SymbolTable* table);

}  // namespace heddle::opt
