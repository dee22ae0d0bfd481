// Kernels with inner kernels: text, rules, and how the interpreter runs their tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "kernel/interp.h"
#include "kernel/text.h"
#include "kernel/verify.h"

namespace heddle::kernel {
namespace {

using ::testing::HasSubstr;

std::string example() {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/src/kernel/testdata/table.kernel");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The example with a piece of its text replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = example();
  const size_t at = text.find(from);
  HEDDLE_CHECK(at != std::string::npos, "no '{}'", from);
  return text.replace(at, from.size(), to);
}

std::string problems(const std::string& text) {
  auto kernel = parse_kernel(text);
  if (!kernel) return "parse: " + kernel.error().message;
  Status status = verify(*kernel);
  return status ? "" : status.error().message;
}

InterpReport run(const std::string& text, std::vector<float>* a, std::vector<float>* b,
                 uint64_t seed = 0) {
  auto kernel = parse_kernel(text);
  HEDDLE_CHECK(kernel, "{}", kernel.error().message);
  std::vector<float> a_in(5), b_in(40), sums(1), others(1), scale(1);
  for (size_t i = 0; i < 5; ++i) a_in[i] = static_cast<float>(i) + 1;
  for (size_t i = 0; i < 40; ++i) b_in[i] = static_cast<float>(i) / 4;
  a->assign(5, 0);
  b->assign(40, 0);
  return interpret(
      *kernel,
      {a_in.data(), b_in.data(), a->data(), b->data(), sums.data(), others.data(), scale.data()},
      {}, seed);
}

TEST(Table, PrintsWhatItParses) {
  auto kernel = parse_kernel(example());
  ASSERT_TRUE(kernel) << kernel.error().message;
  const std::string text = to_string(*kernel);
  auto again = parse_kernel(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_string(*again), text);
  EXPECT_EQ(again->inner.size(), 3u);
  EXPECT_EQ(again->phases[1].groups[0].table[0].dims, (std::vector<int64_t>{40, 3}));
  EXPECT_EQ(task_count(*again, again->phases[0], {}), 1);
  EXPECT_EQ(task_count(*again, again->phases[1], {}), 4);
}

TEST(Table, IsRun) {
  for (uint64_t seed : {0, 1, 2}) {
    std::vector<float> a, b;
    const InterpReport report = run(example(), &a, &b, seed);
    EXPECT_THAT(report.faults, ::testing::IsEmpty());
    const float scale = std::sqrt(55.0f + 20540.0f / 16);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(a[i], (static_cast<float>(i) + 1) * scale);
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(b[i], static_cast<float>(i) / 4 * scale);
    EXPECT_EQ(report.buffers[0].loads, 10);
  }
}

TEST(Table, RacesAreFound) {
  std::vector<float> a, b;
  const InterpReport race = run(changed("phase in_order", "phase"), &a, &b);
  EXPECT_THAT(race.faults, ::testing::Contains(HasSubstr("sums")));
  const InterpReport twice = run(changed("row (a, scale, a_out) dims 5, 1",
                                         "row (a, scale, a_out) dims 5, 1\n"
                                         "row (a, scale, a_out) dims 5, 1"),
                                 &a, &b);
  EXPECT_THAT(twice.faults, ::testing::Contains(HasSubstr("a_out")));
}

TEST(Table, FaultsAreNamed) {
  EXPECT_EQ(problems(example()), "");
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"row (a, sums) dims 5", "row (a, sums) dims 6"}, "'a' is not what 'x' wants"},
      {{"row (a, sums) dims 5", "row (a, sums)"}, "0 dimensions, wanted 1"},
      {{"row (a, sums) dims 5", "row (a, b) dims 5"}, "'b' is not what 'y' wants"},
      {{"row (sums, others, scale)", "row (sums, others)"}, "2 buffers, wanted 3"},
      {{"row (sums, others, scale)", "row (sums, others, nothing)"}, "unknown buffer 'nothing'"},
      {{"table both phase 0", "table both phase 1"}, "'both' has no phase 1"},
      {{"table both phase 0", "table other phase 0"}, "unknown inner kernel 'other'"},
      {{"scratch 64\n  buffer a:", "buffer a:"}, "its scratch of 64 bytes is more than 0"},
      {{"buffer a_out: f32[5] global out", "buffer a_out: f32[5] global in"}, "'y' is written"},
      {{"phase in_order {", "phase { group { } "}, "a group names no inner kernel"},
      {{"inner both {", "inner both { inner x { } "}, "an inner kernel has no inner one"},
      {{"inner both {", "inner total { } inner both {"}, "two are called 'total'"},
  };
  for (const auto& [change, wanted] : cases)
    EXPECT_THAT(problems(changed(change.first, change.second)), HasSubstr(wanted)) << change.second;
  EXPECT_THAT(problems("heddle.kernel 1\nkernel k { phase in_order { group { } } }"),
              HasSubstr("no inner kernels"));
}

}  // namespace
}  // namespace heddle::kernel
