// Compares the cut with all labellings; checks the promises of convex regions.
#include "plan/cut.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/convex.h"

namespace heddle::plan {
namespace {

using program::Space;
using Unit = CutProblem::Unit;

// A random graph: unit u makes value u, read by later ones.
CutProblem random_problem(std::mt19937_64& random) {
  CutProblem problem;
  const int units = 2 + static_cast<int>(random() % 9);
  for (int u = 0; u < units; ++u) problem.units.push_back(static_cast<Unit>(random() % 3));
  for (int u = 0; u + 1 < units; ++u) {
    CutProblem::Value value{
        u, {}, {static_cast<int64_t>(random() % 3), static_cast<int64_t>(random() % 100)}};
    for (int r = u + 1; r < units; ++r)
      if (random() % 3 == 0) value.readers.push_back(r);
    problem.values.push_back(value);
  }
  return problem;
}

TEST(cut, IsTheCheapestOfAll) {
  std::mt19937_64 random(1);
  int64_t crossing = 0;
  for (int round = 0; round < 3000; ++round) {
    const CutProblem problem = random_problem(random);
    const size_t units = problem.units.size();
    const std::vector<Space> got = best_sides(problem);
    CutCost best{INT64_MAX, 0};
    size_t most_on_device = 0;
    for (uint64_t mask = 0; mask < uint64_t{1} << units; ++mask) {
      std::vector<Space> sides;
      bool allowed = true;
      for (size_t u = 0; u < units; ++u) {
        sides.push_back(mask >> u & 1 ? Space::host : Space::device);
        allowed = allowed && (problem.units[u] == Unit::free ||
                              (problem.units[u] == Unit::host) == (sides[u] == Space::host));
      }
      if (!allowed) continue;
      const CutCost cost = cost_of(problem, sides);
      const auto on_device =
          static_cast<size_t>(std::count(sides.begin(), sides.end(), Space::device));
      if (cost < best || (cost == best && on_device > most_on_device)) most_on_device = on_device;
      best = std::min(best, cost);
    }
    ASSERT_EQ(cost_of(problem, got), best) << "round " << round;
    ASSERT_EQ(static_cast<size_t>(std::count(got.begin(), got.end(), Space::device)),
              most_on_device)
        << "round " << round;
    for (size_t u = 0; u < units; ++u) {
      const bool fixed = problem.units[u] != Unit::free;
      ASSERT_TRUE(!fixed || (problem.units[u] == Unit::host) == (got[u] == Space::host));
    }
    crossing += best.price;
  }
  EXPECT_GT(crossing, 3000);
}

TEST(cut, TwoReadersOnOneSideCostOne) {
  // A device value with two host readers, and a value of the first reader for the second.
  const CutProblem problem{{Unit::device, Unit::host, Unit::host},
                           {{0, {1, 2}, {1, 8}}, {1, {2}, {1, 8}}}};
  EXPECT_EQ(cost_of(problem, best_sides(problem)), (CutCost{1, 8}));
}

// Whether the graph of regions is acyclic.
bool is_acyclic(const std::vector<std::vector<size_t>>& before, const std::vector<size_t>& region) {
  const size_t count = region.size();
  std::vector<std::vector<bool>> leads(count, std::vector<bool>(count));
  for (size_t n = 0; n < count; ++n)
    for (size_t p : before[n])
      if (region[p] != region[n]) leads[region[p]][region[n]] = true;
  for (size_t k = 0; k < count; ++k)
    for (size_t i = 0; i < count; ++i)
      for (size_t j = 0; j < count; ++j)
        if (leads[i][k] && leads[k][j]) leads[i][j] = true;
  for (size_t i = 0; i < count; ++i)
    if (leads[i][i]) return false;
  return true;
}

TEST(convex, RegionsAreAcyclicAndMaximal) {
  std::mt19937_64 random(2);
  int64_t joined = 0;
  for (int round = 0; round < 400; ++round) {
    const size_t count = 1 + random() % 16;
    std::vector<std::vector<size_t>> before(count);
    std::vector<int> label;
    for (size_t n = 0; n < count; ++n) {
      label.push_back(static_cast<int>(random() % 4) - 1);
      for (size_t p = 0; p < n; ++p)
        if (random() % 5 == 0) before[n].push_back(p);
    }
    const std::vector<size_t> region = convex_regions(before, label);
    ASSERT_TRUE(is_acyclic(before, region)) << "round " << round;
    for (size_t n = 0; n < count; ++n)
      for (size_t p : before[n]) ASSERT_LE(region[p], region[n]);
    for (size_t a = 0; a < count; ++a)
      for (size_t b = 0; b < a; ++b)
        if (region[a] == region[b]) {
          ASSERT_EQ(label[a], label[b]);
          ASSERT_GE(label[a], 0);
          ++joined;
        }
    for (size_t n = 0; n < count; ++n)
      for (size_t p : before[n]) {
        if (region[p] == region[n] || label[p] != label[n] || label[n] < 0) continue;
        std::vector<size_t> merged = region;
        for (size_t& r : merged)
          if (r == region[n]) r = region[p];
        ASSERT_FALSE(is_acyclic(before, merged)) << "round " << round;
      }
  }
  EXPECT_GT(joined, 400);
}

}  // namespace
}  // namespace heddle::plan
