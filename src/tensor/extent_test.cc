#include "tensor/extent.h"

#include <gtest/gtest.h>

namespace heddle::tensor {
namespace {

TEST(Extent, IsASumOfMultiples) {
  const std::vector<std::string> names{"past", "new"};
  const Extent past = Extent::of_symbol(0), fresh = Extent::of_symbol(1);
  const Extent sum = past.times(2).plus(fresh).plus({3, {}});
  EXPECT_EQ(to_string(sum, names), "2*past + new + 3");
  EXPECT_EQ(sum.at(std::vector<int64_t>{10, 4}), 27);
  EXPECT_EQ(to_string(past.plus(past.times(-1)), names), "0");
  EXPECT_TRUE(past.plus(past.times(-1)).is_constant());
  EXPECT_EQ(to_string(fresh.times(-1).plus({-2, {}}), names), "-new - 2");
  EXPECT_EQ(fresh.plus(past), past.plus(fresh));
}

TEST(Extent, HasACommonFactor) {
  const Extent rows = Extent::of_symbol(0).times(12).plus({24, {}});
  EXPECT_EQ(rows.common_factor(), 12);
  EXPECT_EQ(rows.divided_by(12), Extent::of_symbol(0).plus({2, {}}));
  EXPECT_EQ(Extent::of_symbol(0).plus({1, {}}).common_factor(), 1);
  EXPECT_EQ((Extent{8, {}}).common_factor(), 1);
}

TEST(Extent, QuotientsOfTheSameNumberAreEqual) {
  const std::vector<std::string> names{"n", "m"};
  const Extent n = Extent::of_symbol(0), m = Extent::of_symbol(1);
  // A window of 3 with a step of 2 and one of 1 give as many.
  const Extent half = *n.plus({-1}).quotient(2);
  EXPECT_EQ(half.plus({1}), *n.plus({1}).quotient(2));
  EXPECT_EQ(to_string(half.plus({1}), names), "(n + 1)/2");
  EXPECT_EQ(*half.plus({1}).plus({1}).quotient(2), *n.plus({3}).quotient(4));
  EXPECT_EQ(*n.times(32).plus({1}).quotient(2), n.times(16));
  EXPECT_EQ(*n.times(6).plus({5}).quotient(4), n.plus(*n.plus({2}).quotient(2)));
  EXPECT_EQ(*n.quotient(3)->times(6).quotient(2), n.quotient(3)->times(3));
  EXPECT_EQ(to_string(half.times(-2), names), "-2*((n + 1)/2) + 2");
  EXPECT_EQ((Extent{-1}.quotient(4)), Extent{-1});
  EXPECT_FALSE(n.quotient(2)->plus(m).quotient(3));
  EXPECT_EQ(half.symbols(), std::vector<int64_t>{0});
  EXPECT_EQ(*half.with(std::vector{m.times(2), n}), m.plus({-1}));
  EXPECT_EQ(*half.with(std::vector{Extent{8}, n}), Extent{3});
}

TEST(Extent, QuotientsHaveTheValuesOfTheirTexts) {
  for (const int64_t a : {1, 2, 5})
    for (const int64_t c : {-7, 0, 3})
      for (const int64_t b : {2, 3, 10})
        for (const int64_t n : {0, 1, 9, 64}) {
          const Extent sum = Extent::of_symbol(0).times(a).plus({c});
          const int64_t dividend = a * n + c, wanted = (dividend - (dividend % b + b) % b) / b;
          const Extent extent = *sum.quotient(b);
          EXPECT_EQ(extent.at(std::vector{n}), wanted) << a << c << b << n;
          EXPECT_EQ(read_extent(to_text(extent)), extent) << to_text(extent);
          const Extent more = extent.times(3).plus(Extent::of_symbol(1));
          EXPECT_EQ(read_extent(to_text(more)), more) << to_text(more);
        }
  EXPECT_EQ(to_text(*read_extent("$0+2*(($1+1)/2)-1")), "$0+2*(($1+1)/2)-1");
  for (const char* bad : {"", "$", "1+", "$0/0", "((((($0)))))", "$0 ", "1*", "99999999999",
                          "99999999*(99999999*(99999999*$0))"})
    EXPECT_FALSE(read_extent(bad)) << bad;
}

TEST(Extent, AreRaisedAsFarAsTheyAreNeeded) {
  const Extent samples = *Extent::of_symbol(0).plus({-10}).quotient(5);
  std::vector<int64_t> least{1}, bounds{64};
  raise_to(samples, 2, bounds, least);
  EXPECT_EQ(least[0], 20);
  raise_to(samples, 100, bounds, least);
  EXPECT_EQ(least[0], 64);
}

}  // namespace
}  // namespace heddle::tensor
