#include "precision/min_cut.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace heddle::precision {
namespace {

struct Term {
  int a, b;  // b: -1: cost if a is chosen, -2: if not; else if a is chosen and b is not
  int64_t cost;
};

int64_t paid(const std::vector<Term>& terms, uint32_t chosen) {
  int64_t sum = 0;
  for (const Term& term : terms) {
    const bool a = (chosen >> term.a & 1U) != 0;
    const bool pays = term.b == -1 ? a : term.b == -2 ? !a : a && (chosen >> term.b & 1U) == 0;
    if (pays) sum += term.cost;
  }
  return sum;
}

TEST(MinCut, IsTheCheapestOfAllLabellings) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const int nodes = 1 + static_cast<int>(random() % 12);
    MinCut cut(nodes);
    std::vector<Term> terms;
    for (int i = 0; i < 4 * nodes; ++i) {
      const int a = static_cast<int>(random() % static_cast<uint64_t>(nodes));
      const int b = static_cast<int>(random() % static_cast<uint64_t>(nodes));
      const auto cost = static_cast<int64_t>(random() % 20);
      switch (random() % 3) {
        case 0:
          cut.pay_if(a, cost);
          terms.push_back({a, -1, cost});
          break;
        case 1:
          cut.pay_unless(a, cost);
          terms.push_back({a, -2, cost});
          break;
        default:
          cut.pay_between(a, b, a == b ? 0 : cost);
          terms.push_back({a, b, a == b ? 0 : cost});
      }
    }
    const std::vector<bool> solved = cut.solve();
    uint32_t chosen = 0;
    for (int i = 0; i < nodes; ++i) chosen |= solved[static_cast<size_t>(i)] ? 1U << i : 0;
    int64_t best = paid(terms, 0);
    int fewest = 0;
    for (uint32_t other = 1; other < 1U << nodes; ++other) {
      const int64_t sum = paid(terms, other);
      const int count = __builtin_popcount(other);
      if (sum < best) fewest = count;
      if (sum == best) fewest = std::min(fewest, count);
      best = std::min(best, sum);
    }
    EXPECT_EQ(paid(terms, chosen), best) << "seed " << seed;
    EXPECT_EQ(__builtin_popcount(chosen), fewest) << "seed " << seed;
  }
}

TEST(MinCut, TiesHold) {
  MinCut cut(3);
  cut.pay_unless(0, 10);
  cut.pay_if(1, 3);
  cut.pay_if(2, 4);
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 0}, {1, 2}, {2, 1}})
    cut.pay_between(a, b, MinCut::kNever);
  EXPECT_EQ(cut.solve(), (std::vector<bool>{true, true, true}));
}

// A layered graph as a deep network gives it; a bound on the algorithm, not on the machine.
TEST(MinCut, TakesTenThousandOperators) {
  constexpr int kNodes = 30'000;
  std::mt19937_64 random(1);
  MinCut cut(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    cut.pay_if(i, static_cast<int64_t>(random() % 1000));
    cut.pay_unless(i, static_cast<int64_t>(random() % 1000));
    for (int j = 1; j <= 3 && i + j < kNodes; ++j) {
      cut.pay_between(i, i + j, static_cast<int64_t>(random() % 300));
      cut.pay_between(i + j, i, static_cast<int64_t>(random() % 300));
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<bool> chosen = cut.solve();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_NE(std::count(chosen.begin(), chosen.end(), true), 0);
  EXPECT_LT(took.count(), 30) << "many times the usual second";
}

}  // namespace
}  // namespace heddle::precision
