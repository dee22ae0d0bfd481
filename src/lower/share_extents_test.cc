#include "lower/share_extents.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "kernel/interp.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::lower {
namespace {

kernel::Kernel parsed(const std::string& text) {
  auto kernel = kernel::parse_kernel(text);
  EXPECT_TRUE(kernel) << kernel.error().message;
  return *kernel;
}

OpenExtents behind_pass(const kernel::Kernel& kernel) {
  return opened(kernel, [](kernel::Kernel* one, const Context& context) {
    return *open_extents(*one, context);
  });
}

// out[r, c] = max(x[r, c] * scale[c], 0) in a row of its own for each task.
std::string rows(int count, int width) {
  return fmt::format(R"(heddle.kernel 1
kernel k {{
  target "host"
  buffer scale: f32[{1}] global in
  buffer x: f32[{2}] global in
  buffer out: f32[{2}] global out
  phase {{
    group grid (t {0}) {{
      vector l {1} lanes 8 {{
        out[t*{1} + l] = max(x[t*{1} + l]*scale[l], 0:f32)
      }}
    }}
  }}
}}
)",
                     count, width, count * width);
}

std::vector<float> run(const kernel::Kernel& kernel, int count, int width,
                       const std::vector<int64_t>& dims) {
  std::vector<float> scale(static_cast<size_t>(width)), x(static_cast<size_t>(count * width)),
      out(x.size());
  std::iota(scale.begin(), scale.end(), -3);
  std::iota(x.begin(), x.end(), -7);
  auto report = kernel::interpret(kernel, {scale.data(), x.data(), out.data()}, dims);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0];
  return out;
}

TEST(SharedExtents, AlikeKernelsBecomeOne) {
  const std::vector<std::pair<int, int>> sizes{{4, 16}, {4, 24}, {4, 13}};
  std::vector<OpenExtents> open;
  std::vector<std::vector<int64_t>> values;
  for (const auto& [count, width] : sizes) {
    open.push_back(behind_pass(parsed(rows(count, width))));
    values.push_back(open.back().dims);
    EXPECT_EQ(kernel::to_string(open.back().kernel), kernel::to_string(open[0].kernel));
  }
  const auto shared = share_extents(open[0].kernel, values);
  ASSERT_TRUE(shared);
  // Dimensions: the width, and the extent of the rows together; the number of tasks is one for all.
  EXPECT_EQ(shared->dims, (std::vector<std::vector<int64_t>>{{16, 64}, {24, 96}, {13, 52}}));
  EXPECT_NE(kernel::to_string(shared->kernel).find("grid (t 4)"), std::string::npos)
      << kernel::to_string(shared->kernel);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto [count, width] = sizes[i];
    EXPECT_EQ(run(shared->kernel, count, width, shared->dims[i]),
              run(parsed(rows(count, width)), count, width, {}));
  }
}

TEST(SharedExtents, OneKernelIsItselfAgain) {
  const kernel::Kernel kernel = parsed(rows(4, 16));
  const OpenExtents open = behind_pass(kernel);
  const auto shared = share_extents(open.kernel, {open.dims});
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->dims[0].empty());
  EXPECT_EQ(kernel::to_string(shared->kernel), kernel::to_string(kernel));
}

}  // namespace
}  // namespace heddle::lower
