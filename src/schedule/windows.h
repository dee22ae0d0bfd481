// Windows along an image whose channels lie together: depthwise convolutions, pools, convolutions
// in groups of few features (group_lanes.cc). Lanes run over the channels, several neighbouring
// output columns are held in registers, the window's columns are written out and its rows a loop
// over those that lie inside the image (stages.md §4.9, §7).
#pragma once

#include <optional>
#include <vector>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// None: the stage is no window, or its form does not fit.
std::optional<WindowForm> match_window(const Stage& stage, const target::Target& target);

// How many of its rows are windows of which the epilogue, too, is read and written along
// the lanes.
int count_windows(const PlacedFusion& placed);

// Every guard of the stage's loads and values.
std::vector<index::Guard> all_guards(const Stage& stage);
// Guards that make an element neutral where they fail, so that it need not be visited: the
// padding of a convolution or of a pool, and pads of zeros in front of them.
std::vector<index::Guard> border_guards(const Stage& stage);

}  // namespace heddle::schedule
