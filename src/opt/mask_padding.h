// mask_padding with symbols some of which follow from others, as where an input is one longer than
// another one. Behind it Module::symbols are those of the table, and more where the extents of
// joined arrays follow from them; the entry has a parameter s32[] for each, in that order. Inputs
// that got room for what is joined to them (join_padded.h) must have zeros behind their elements.
#pragma once

#include "base/error.h"
#include "hlo/dim_classes.h"

namespace heddle::opt {

// What an extent has become in the entry: all elements of a constant, or where a slice begins in a
// dimension, are `factor` more for one more of the symbol's extent. The module has it at the bound.
struct Growing {
  hlo::Instr* instr = nullptr;
  int64_t dimension = -1;  // of a slice
  size_t symbol = 0;
  int64_t factor = 0;
};

// What is behind the elements of inputs, but for those with room and those in whose memory an
// output is made.
enum class BehindInputs { anything, zeros };

// Errors: what hlo::DimClasses::derive refuses; a reduction without a neutral value.
Status mask_bounded(hlo::Module& module, hlo::SymbolTable table, BehindInputs behind,
                    const std::vector<Growing>& growing = {}, const hlo::SliceExtents& slices = {});

}  // namespace heddle::opt
