#include "plan/offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace heddle::plan {
namespace {

bool meet(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

void expect_valid(const std::vector<Block>& blocks, const Offsets& plan) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_GE(plan.offsets[i], 0);
    ASSERT_EQ(plan.offsets[i] % 64, 0);
    ASSERT_LE(plan.offsets[i] + blocks[i].bytes, plan.height_bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!meet(blocks[i], blocks[j])) continue;
      ASSERT_TRUE(plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + blocks[j].bytes <= plan.offsets[i]);
    }
  }
}

// Some optimal arena is the one that lowest-gap placement gives for some order of the blocks.
int64_t optimal_height(const std::vector<Block>& blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(blocks.size(), -1);
    int64_t height = 0;
    for (size_t i : order) {
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t j = 0; j < blocks.size(); ++j) {
          if (offsets[j] < 0 || !meet(blocks[i], blocks[j]) || offsets[j] >= at + blocks[i].bytes ||
              at >= offsets[j] + blocks[j].bytes)
            continue;
          at = offsets[j] + blocks[j].bytes;
          moved = true;
        }
      }
      offsets[i] = at;
      height = std::max(height, at + blocks[i].bytes);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

std::vector<Block> random_blocks(std::mt19937_64& random, int count, int steps) {
  std::vector<Block> blocks;
  for (int i = 0; i < count; ++i) {
    const auto a = static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
    const auto b = static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
    blocks.push_back({static_cast<int64_t>(random() % 8) * 64, std::min(a, b), std::max(a, b)});
  }
  return blocks;
}

TEST(offsets, SmallOnesAgainstBruteForce) {
  std::mt19937_64 random(17);
  int64_t greedy = 0, optimum = 0;
  for (int round = 0; round < 200; ++round) {
    const std::vector<Block> blocks = random_blocks(random, 6, 8);
    const Offsets plan = assign_offsets(blocks);
    expect_valid(blocks, plan);
    const int64_t best = optimal_height(blocks);
    ASSERT_LE(lower_bound_bytes(blocks), best);
    ASSERT_GE(plan.height_bytes, best);
    greedy += plan.height_bytes;
    optimum += best;
  }
  EXPECT_LE(static_cast<double>(greedy), 1.001 * static_cast<double>(optimum));
}

TEST(offsets, LowerBoundByHand) {
  EXPECT_EQ(lower_bound_bytes({}), 0);
  EXPECT_EQ(lower_bound_bytes({{64, 0, 1}, {128, 1, 2}, {256, 2, 3}}), 384);
  EXPECT_EQ(lower_bound_bytes({{64, 0, 0}, {128, 1, 1}}), 128);
}

// Blocks of transformer layers. Where the next residual is made in place of the last one the bound
// is met; where both live for a step, residuals would have to alternate between the arena's ends.
TEST(offsets, NetworksAreNearTheBound) {
  for (const bool in_place : {true, false}) {
    std::vector<Block> blocks;
    for (int64_t layer = 0; layer < 24; ++layer) {
      const int64_t at = layer * 6;
      blocks.push_back({768 * 128 * 4, at, at + (in_place ? 5 : 6)});  // residual
      blocks.push_back({3 * 768 * 128 * 4, at + 1, at + 2});           // q, k, v
      blocks.push_back({12 * 128 * 128 * 4, at + 2, at + 3});          // scores
      blocks.push_back({768 * 128 * 4, at + 3, at + 4});
      blocks.push_back({3072 * 128 * 4, at + 4, at + 5});
    }
    const Offsets plan = assign_offsets(blocks);
    expect_valid(blocks, plan);
    const int64_t bound = lower_bound_bytes(blocks);
    EXPECT_LE(plan.height_bytes, in_place ? bound : bound * 12 / 10);
  }
}

TEST(offsets, LargeOnesAreValidQuickAndTheSame) {
  std::mt19937_64 random(23);
  const std::vector<Block> blocks = random_blocks(random, 1500, 400);
  const Offsets plan = assign_offsets(blocks);
  expect_valid(blocks, plan);
  EXPECT_LT(static_cast<double>(plan.height_bytes),
            1.3 * static_cast<double>(lower_bound_bytes(blocks)));
  EXPECT_EQ(assign_offsets(blocks).offsets, plan.offsets);
}

}  // namespace
}  // namespace heddle::plan
