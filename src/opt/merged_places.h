// Where the elements are of dimensions that a reshape merges and of which an inner one is bounded:
// they lie apart in the padded array, and are the first ones of the merged dimension
// (heddle.first_rows, hlo/symbol.h), in their order.
#pragma once

#include <optional>
#include <vector>

#include "hlo/builder.h"

namespace heddle::opt {

// Of merged dimensions at their bounds; all s32. N is the product of the bounds.
struct MergedPlaces {
  hlo::Instr* rows = nullptr;        // [N]: 0, 1, …, of which as many count as are there
  std::vector<hlo::Instr*> digits;   // [N] each: the place in each of the dimensions
  hlo::Instr* of_packed = nullptr;   // [N, dimensions]: all of them
  std::vector<hlo::Instr*> extents;  // s32[]: what is there of each dimension
  hlo::Ints bounds;                  // not of those that were read
};
MergedPlaces make_places(hlo::Builder& b, const hlo::Ints& bounds,
                         const std::vector<hlo::Instr*>& extents);
// [bounds]: the place of each element in the merged dimension. `along`: 0, 1, … of each dimension.
hlo::Instr* places_in_packed(hlo::Builder& b, const hlo::Ints& bounds,
                             const std::vector<hlo::Instr*>& extents,
                             const std::vector<hlo::Instr*>& along);

// x with dimensions [at, at + digits) merged into one: its first elements are those at the places.
hlo::Instr* pack_dimensions(hlo::Builder& b, hlo::Instr* x, int64_t at, const MergedPlaces& places);

// Whether positions are `of_packed`; then the places.
std::optional<MergedPlaces> read_places(const hlo::Instr* positions);
// Whether positions are what places_in_packed makes; then the extents but for the outermost.
std::optional<std::vector<hlo::Instr*>> read_in_packed(const hlo::Instr* positions);

}  // namespace heddle::opt
