// Private to fuse: improves a cover by small steps.
#pragma once

#include <vector>

#include "fuse/pattern_judge.h"
#include "fuse/patterns.h"

namespace heddle::fuse {

// A kernel of a cover: the vertices that it computes, and its time.
struct CoverPart {
  Members members;
  double price = 0;
  bool fixed = false;  // stays as it is
};

// The patterns were found by the delta evaluator, which knows no schedule and may take for one good
// kernel what the latency evaluator knows to be better as two. So a kernel is cut where that gains,
// the part cut off moves to a neighbour, and neighbours (and small unconnected kernels) become one:
// always the first step that gains enough, until none does or the judge has been asked for as many
// schedules as the options allow. The most expensive kernels come first. A cut that adds more than
// `spare` kernels must gain as much as the options require for more kernels. Returns whether
// anything changed; the cover has no cycle before and none after.
bool refine(const Graph& graph, PatternJudge* judge, const SearchOptions& options, int64_t spare,
            std::vector<CoverPart>* parts);

}  // namespace heddle::fuse
