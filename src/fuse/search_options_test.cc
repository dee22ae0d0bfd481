#include "fuse/search_options.h"

#include <gtest/gtest.h>

namespace heddle::fuse {
namespace {

TEST(SearchOptions, MoreKernelsMustGainMoreThanTheEvaluatorErrs) {
  const SearchOptions options;
  EXPECT_TRUE(may_add_kernels(99, 100, 0, options));  // as many, or fewer: other rules decide
  EXPECT_TRUE(may_add_kernels(99, 100, -1, options));
  EXPECT_TRUE(may_add_kernels(7.5e6, 20.9e6, 25, options));
  EXPECT_FALSE(may_add_kernels(0.75e6, 1e6, 1, options));     // 25 % are within the error
  EXPECT_FALSE(may_add_kernels(17'800, 26'300, 2, options));  // 8.5 us are too few for two kernels
  EXPECT_TRUE(may_add_kernels(10'000, 30'100, 2, options));
  EXPECT_FALSE(may_add_kernels(10'000, 30'100, 3, options));
}

}  // namespace
}  // namespace heddle::fuse
