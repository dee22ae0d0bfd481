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

}  // namespace
}  // namespace heddle::tensor
