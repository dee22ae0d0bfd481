// Windows over an image whose channels are contiguous: depthwise convolutions, pools, convolutions
// in groups of few features (group_lanes.cc). Lanes run over the channels, several neighbouring
// output columns are held in registers, the window's columns are unrolled, and its rows are a loop
// over the rows inside the image (stages.md §4.9, §7).
#pragma once

#include <optional>
#include <vector>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// None: the stage is no window, or its form does not fit.
std::optional<WindowForm> match_window(const Stage& stage, const target::Target& target);

// The number of rows that are windows and whose epilogue is read and written along the lanes too.
int count_windows(const PlacedFusion& placed);

// Every guard of the stage's loads and values.
std::vector<index::Guard> all_guards(const Stage& stage);
// Guards outside of which an element is neutral, so that it need not be visited: the padding of a
// convolution or of a pool, and zero padding of their input.
std::vector<index::Guard> border_guards(const Stage& stage);

}  // namespace heddle::schedule
