#include "plan/ordering.h"

#include <gtest/gtest.h>

#include <random>

namespace heddle::plan {
namespace {

TEST(ordering, SequentialIsTheirOrder) {
  const Ordering ordering = Ordering::sequential();
  EXPECT_TRUE(ordering.is_sequential());
  EXPECT_TRUE(ordering.runs_before(2, 3));
  EXPECT_FALSE(ordering.runs_before(3, 3));
  EXPECT_FALSE(ordering.runs_before(3, 2));
}

TEST(ordering, PredecessorIsTheClosureOfItsEdges) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + random() % 20;
    std::vector<std::vector<size_t>> before(count);
    std::vector<std::vector<bool>> reached(count, std::vector<bool>(count));
    for (size_t i = 1; i < count; ++i) {
      for (uint64_t edges = random() % 4; edges > 0; --edges) before[i].push_back(random() % i);
      for (size_t p : before[i]) {
        reached[i][p] = true;
        for (size_t j = 0; j < p; ++j)
          if (reached[p][j]) reached[i][j] = true;
      }
    }
    const Ordering ordering = Ordering::predecessor(before);
    for (size_t i = 0; i < count; ++i)
      for (size_t j = 0; j < count; ++j)
        EXPECT_EQ(ordering.runs_before(j, i), reached[i][j]) << j << " " << i;
  }
}

}  // namespace
}  // namespace heddle::plan
