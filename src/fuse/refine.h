// Private to fuse: a cover that is moved towards a better one by small steps.
#pragma once

#include <vector>

#include "fuse/pattern_judge.h"
#include "fuse/patterns.h"

namespace heddle::fuse {

// A kernel of a cover: the vertices that it makes, and what it takes.
struct CoverPart {
  Members members;
  double price = 0;
  bool fixed = false;  // stays as it is
};

// The delta evaluator, which the patterns were found by, knows no schedule, and takes for one good
// kernel what the latency evaluator knows to be two. So a kernel is cut where that gains, the part
// cut off moves to a neighbour, and neighbours (and small kernels that have nothing to do with each
// other) become one: the step that comes first and gains enough, until none does or as many
// schedules as the options allow have been asked of the judge. The most expensive kernels come
// first. A cut beyond `spare` kernels more than there were must gain as much as the options want of
// more kernels. Returns whether anything changed; the cover has no cycle before and none after.
bool refine(const Graph& graph, PatternJudge* judge, const SearchOptions& options, int64_t spare,
            std::vector<CoverPart>* parts);

}  // namespace heddle::fuse
