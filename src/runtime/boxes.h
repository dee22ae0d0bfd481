// Finds updates (dynamic-update-slice) without a copy: where the update slice is the result of an
// earlier launch and has no other use, the launch stores it straight to its address in the array.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "program/program.h"

namespace heddle::runtime {

struct PlacedBox {
  size_t argument = 0;  // of the launch
  const program::Update* update = nullptr;
};

struct PlacedBoxes {
  std::unordered_map<const program::Launch*, std::vector<PlacedBox>> of_launch;
  std::unordered_set<const program::Update*> updates;  // all of those above
};

// Looks at the commands of a section and of their regions. The program must outlive the result.
PlacedBoxes place_boxes(const program::Program& program,
                        const std::vector<program::Command>& commands);

}  // namespace heddle::runtime
