// Which input an output may overwrite.
#pragma once

#include <vector>

#include "schedule/place.h"

namespace heddle::stitch {

// By output: the inputs of its size that it may overwrite: every element is read for the last time
// before it is written, by the task that writes it or in an earlier phase.
struct OverwrittenInputs {
  std::vector<std::vector<int>> allowed;
  // One of them, or -1. No input is chosen for two outputs; inputs that only the output's stage
  // reads are chosen first.
  std::vector<int> chosen;
};

OverwrittenInputs overwritten_inputs(const stage::PlacedFusion& placed);

}  // namespace heddle::stitch
