// Which input an output may overwrite.
#pragma once

#include <vector>

#include "schedule/place.h"

namespace heddle::stitch {

// By output: an input of its size on whose memory it may lie: every element is read for the last
// time before it is written, by the task that writes it or in a phase before.
struct OverwrittenInputs {
  std::vector<std::vector<int>> allowed;
  // One of them, or -1. No input serves two outputs; one that only the output's own stage reads is
  // taken first.
  std::vector<int> chosen;
};

OverwrittenInputs overwritten_inputs(const stage::PlacedFusion& placed);

}  // namespace heddle::stitch
