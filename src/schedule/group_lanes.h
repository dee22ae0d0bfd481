// Convolutions in groups of few features: one group does not fill the lanes, so neighbouring
// groups share them. Group and feature become one digit c, as the memory has them; the input is
// then read at (c floordiv features)·inputs + i, one element for the lanes of a group, and the
// convolution is a window (windows.h) whose lanes run over c.
#pragma once

#include <optional>

#include "schedule/stage_names.h"
#include "target/target.h"

namespace heddle::schedule {

// The graph with that digit in all of its stages. None: the convolution has no such groups, or what
// hangs on it does not follow them, or it is no window.
std::optional<StageGraph> share_lanes(const StageGraph& graph, StageId conv,
                                      const target::Target& target);

}  // namespace heddle::schedule
