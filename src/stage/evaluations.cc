#include "stage/evaluations.h"

#include <algorithm>
#include <span>

namespace heddle::stage {
namespace {

struct Loop {
  int variable;
  int64_t factor, trips;
};

// Points of [at, at + extent) below `end`, summed over all loops (their factors are positive,
// largest first).
double points(int64_t at, int64_t extent, int64_t end, std::span<const Loop> loops) {
  if (loops.empty()) return static_cast<double>(std::clamp<int64_t>(end - at, 0, extent));
  const Loop& loop = loops.front();
  const auto inner = loops.subspan(1);
  int64_t reach = extent;  // of the inner loops
  double rounds = 1;
  for (const Loop& one : inner) {
    reach += one.factor * (one.trips - 1);
    rounds *= static_cast<double>(one.trips);
  }
  // Iterations that are inside as a whole, then the ones that are cut off.
  const int64_t room = end - at - reach;
  const int64_t whole = room < 0 ? 0 : std::min(loop.trips, room / loop.factor + 1);
  double sum = static_cast<double>(whole) * rounds * static_cast<double>(extent);
  for (int64_t i = whole; i < loop.trips && at + i * loop.factor < end; ++i)
    sum += points(at + i * loop.factor, extent, end, inner);
  return sum;
}

// The loops that move the interval. `plain`: each does so by a positive factor, and nothing else
// moves it.
std::vector<Loop> loops_of(const index::Interval& interval, const std::vector<int>& loops,
                           const std::vector<int64_t>& trips, bool* plain) {
  std::vector<Loop> found;
  *plain = interval.offset.is_affine() && !interval.offset.uses_runtime();
  for (const int loop : loops) {
    if (!interval.offset.uses(loop)) continue;
    const int64_t factor = interval.offset.factor_of(loop);
    *plain = *plain && factor > 0;
    found.push_back({loop, factor, trips[static_cast<size_t>(loop)]});
  }
  *plain = *plain && found.size() == interval.offset.terms().size();
  std::sort(found.begin(), found.end(),
            [](const Loop& a, const Loop& b) { return a.factor > b.factor; });
  return found;
}

}  // namespace

double evaluations(const index::Region& region, const std::vector<int64_t>& box,
                   const std::vector<int>& loops, const std::vector<int64_t>& trips) {
  std::vector<int> left = loops;  // that moved no earlier digit
  double count = 1;
  for (size_t d = 0; d < region.size(); ++d) {
    bool plain = false;
    const std::vector<Loop> own = loops_of(region[d], loops, trips, &plain);
    for (const Loop& loop : own)
      plain = plain && std::find(left.begin(), left.end(), loop.variable) != left.end();
    if (!plain || own.empty()) {
      count *= static_cast<double>(region[d].extent);
      continue;
    }
    count *= points(region[d].offset.constant(), region[d].extent, box[d], own);
    for (const Loop& loop : own) std::erase(left, loop.variable);
  }
  for (const int loop : left) count *= static_cast<double>(trips[static_cast<size_t>(loop)]);
  return count;
}

}  // namespace heddle::stage
