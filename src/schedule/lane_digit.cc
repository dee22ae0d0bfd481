#include "schedule/lane_digit.h"

#include <algorithm>
#include <cstdlib>

#include "stage/node_digits.h"

namespace heddle::schedule {

using index::Expr;
using stage::Load;

namespace {

// The penalty of a gather, where every lane has a different address: larger than the score of the
// contiguous loads of these addresses.
constexpr int kGathered = 4;
// Sums of 300,000 numbers by lanes along three of them, and along another digit: to three sums 82
// and 28 us, of each three 151 and 27 us (Zen 4, one thread).
constexpr int64_t kLeastLanes = 4;

// How far apart in an input neighbours along a digit are, at most.
int64_t longest_step(const Stage& stage, int digit) {
  int64_t step = 0;
  for (const Load& load : stage.loads)
    if (load.source.input >= 0)
      step = std::max(step, std::abs(load.coordinates[0].factor_of(digit)));
  return step;
}

}  // namespace

int contiguity(const Stage& stage, int digit) {
  const stage::NodeDigits nodes = stage::node_digits(stage);
  const auto used_by = [&](const std::vector<Expr>& coordinates) {
    return std::any_of(coordinates.begin(), coordinates.end(),
                       [&](const Expr& x) { return x.uses(digit); });
  };
  const auto moved_by = [&](const std::vector<Expr>& coordinates) {
    return std::any_of(coordinates.begin(), coordinates.end(),
                       [&](const Expr& x) { return stage::moves_unseen(x, digit, nodes); });
  };
  int score = 0;
  for (const Load& load : stage.loads) {
    if (moved_by(load.coordinates)) {
      score -= kGathered;
      continue;
    }
    const Expr& last = load.coordinates.empty() ? Expr(0) : load.coordinates.back();
    if (!used_by(load.coordinates)) continue;
    bool others = false;
    for (size_t i = 0; i + 1 < load.coordinates.size(); ++i)
      others |= load.coordinates[i].uses(digit);
    Expr rest = last - Expr::digit(digit) * last.factor_of(digit);
    score += last.factor_of(digit) == 1 && !others && !rest.uses(digit) ? 2 : -1;
  }
  return score;
}

int contiguous_digit(const Stage& stage) {
  int best = 0, result = -1;
  for (int d = 0; d < static_cast<int>(stage.extents().size()); ++d) {
    const int score = contiguity(stage, d);
    if (score <= best) continue;
    best = score;
    result = d;
  }
  return result;
}

int natural_lane_digit(const Stage& stage, const std::vector<int64_t>& extents,
                       const std::vector<int>& candidates, int lanes) {
  if (!stage.is_reduction()) return candidates.back();
  int lane = candidates.back(), best = INT32_MIN;
  for (int d : candidates) {
    // Ties go to the digit that fills the lanes: a window moves along both.
    const int fills = extents[static_cast<size_t>(d)] >= lanes ? 1 : 0;
    const int score = 2 * contiguity(stage, d) + fills;
    if (score < best) continue;
    best = score;
    lane = d;
  }
  return lane;
}

int filling_digit(const Stage& stage, const std::vector<int64_t>& extents, int natural) {
  const int64_t few = extents[static_cast<size_t>(natural)];
  int best = natural;
  if (few >= kLeastLanes) return natural;
  for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
    if (extents[static_cast<size_t>(d)] < 4 * few) continue;
    if (!stage.is_reduction() || best == natural ||
        longest_step(stage, d) <= longest_step(stage, best))
      best = d;
  }
  return best;
}

int lane_digit(const Stage& stage, const std::vector<int64_t>& extents,
               const std::vector<int>& candidates, int lanes) {
  return filling_digit(stage, extents, natural_lane_digit(stage, extents, candidates, lanes));
}

}  // namespace heddle::schedule
