#include "kernel/gathered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

using testing::ElementsAre;

std::vector<int64_t> gathered(const std::string& body) {
  auto kernel = parse_kernel(R"(heddle.kernel 1
kernel k {
  buffer words: f32[100,8] global in
  buffer places: f32[4,8] global in
  buffer rows: s32[4] global in
  buffer y: f32[4,8] global out
  phase { group grid (i 4) {
)" + body + "}}}");
  EXPECT_TRUE(kernel) << kernel.error().message;
  const Status status = verify(*kernel);
  EXPECT_TRUE(status) << status.error().message;
  return gathered_inputs(*kernel);
}

TEST(gathered, AreWhatIsReadByLoadedRows) {
  EXPECT_THAT(gathered("serial j 8 { y[i, j] = words[convert(rows[i], s64), j] + places[i, j] }"),
              ElementsAre(0));
  EXPECT_THAT(gathered("let r = convert(rows[i], s64)\n let t = min(r, 99)\n"
                       "serial j 8 { y[i, j] = words[t, j] + places[min(t, 3), j] }"),
              ElementsAre(0, 1));
}

TEST(gathered, AreNotWhatIsReadByPlaceToo) {
  EXPECT_THAT(gathered("serial j 8 { y[i, j] = words[convert(rows[i], s64), j] + words[i, j] }"),
              ElementsAre());
}

TEST(gathered, AreFoundInInnerKernels) {
  auto kernel = parse_kernel(R"(heddle.kernel 1
kernel outer {
  buffer a: f32[100] global in
  buffer b: f32[100] global in
  buffer rows: s32[4] global in
  buffer y: f32[4] global out
  buffer z: f32[4] global out
  inner pick {
    buffer x: f32[100] global in
    buffer rows: s32[4] global in
    buffer y: f32[4] global out
    phase { group { serial i 4 { y[i] = x[convert(rows[i], s64)] } } }
  }
  inner first {
    buffer x: f32[100] global in
    buffer y: f32[4] global out
    phase { group { serial i 4 { y[i] = x[i] } } }
  }
  phase { table pick phase 0 { row (a, rows, y) row (b, rows, z) } }
  phase { table first phase 0 { row (b, z) } }
}
)");
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_THAT(gathered_inputs(*kernel), ElementsAre(0));
}

}  // namespace
}  // namespace heddle::kernel
