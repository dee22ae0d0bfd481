// Boxes that a launch can store where they belong: an update whose box is a result of a launch in
// front of it, and of no other use, needs no copy if the launch is given the box's address in the
// array.
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
  std::unordered_set<const program::Update*> updates;  // all of them
};

// Of a section's commands and of the regions of these. The program must outlive the result.
PlacedBoxes place_boxes(const program::Program& program,
                        const std::vector<program::Command>& commands);

}  // namespace heddle::runtime
