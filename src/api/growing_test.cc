// Inputs that others are appended to, such as caches of decoders: one program, derived extents,
// memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <utility>

#include "api/heddle.h"
#include "api/session.h"
#include "import/onnx_test_util.h"

namespace heddle::api {
namespace {

using import::testing::attr;
using import::testing::ints_tensor;
using import::testing::kFloat;
using import::testing::node;
using import::testing::value;
using ::testing::HasSubstr;

constexpr int64_t kBound = 20, kRows = 2, kWidth = 3;

class Growing : public testing::Test {
 protected:
  // present = past [2, past, 3] with one more row; y = the sum of present * weights [total, 1].
  void SetUp() override { write("total"); }
  void write(const std::string& total) {
    import::testing::Model model;
    model.inputs = {value("past", kFloat, {"2", "past", "3"}),
                    value("new", kFloat, {"2", "1", "3"}), value("weights", kFloat, {total, "1"})};
    model.constants = {ints_tensor("axis", {1})};
    model.nodes = {node("Concat", {"past", "new"}, {"present"}, {attr("axis", int64_t{1})}),
                   node("Mul", {"present", "weights"}, {"weighed"}),
                   node("ReduceSum", {"weighed", "axis"}, {"y"}, {attr("keepdims", int64_t{0})})};
    model.outputs = {"present", "y"};
    path_ = testing::TempDir() + "growing_" + std::to_string(::getpid()) + ".onnx";
    std::ofstream(path_, std::ios::binary) << model.bytes();
    options_.cache = "off";
  }
  void TearDown() override { std::remove(path_.c_str()); }

  static OpenOptions bounds(int64_t past, int64_t total) {
    OpenOptions open;
    open.bounds = {{"past", past}, {"total", total}};
    return open;
  }

  std::shared_ptr<Program> compiled(const std::string& path, const OpenOptions& open) {
    auto model = Model::open(path, open);
    EXPECT_TRUE(model) << model.error().message;
    auto program = Program::compile(**model, options_);
    EXPECT_TRUE(program) << program.error().message;
    return *program;
  }

  // One run on `past` with so many rows; returns its results.
  static std::vector<float> grown(Context& context, const std::vector<float>& past, int64_t rows) {
    std::vector<float> fresh(kRows * kWidth), weights(static_cast<size_t>(rows + 1)),
        present(static_cast<size_t>(kRows * (rows + 1) * kWidth) + 1, -7.0F), y(kRows * kWidth);
    for (size_t i = 0; i < fresh.size(); ++i) fresh[i] = static_cast<float>(rows * 10) + float(i);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0F / static_cast<float>(1 << i % 4);
    EXPECT_TRUE(context.set_extent("past", rows));
    int64_t number = 0;
    for (const std::vector<float>* input : {&past, &std::as_const(fresh), &std::as_const(weights)})
      EXPECT_TRUE(context.bind_input(number++, input->data()));
    EXPECT_TRUE(context.bind_output(0, present.data()));
    EXPECT_TRUE(context.bind_output(1, y.data()));
    const Status status = context.run();
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_EQ(present.back(), -7.0F) << "written behind the extent";
    present.pop_back();
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t c = 0; c < kWidth; ++c) {
        double sum = 0;
        for (int64_t i = 0; i <= rows; ++i) {
          const float wanted = i < rows ? past[size_t((row * rows + i) * kWidth + c)]
                                        : fresh[size_t(row * kWidth + c)];
          const float got = present[size_t((row * (rows + 1) + i) * kWidth + c)];
          EXPECT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)))
              << rows << ": " << i;
          sum += double(wanted) * weights[size_t(i)];
        }
        const float got = y[size_t(row * kWidth + c)];
        EXPECT_TRUE(std::abs(got - sum) <= 1e-4 || (std::isnan(got) && std::isnan(sum)))
            << rows << ": " << got << ", wanted " << sum;
      }
    return present;
  }

  std::string path_;
  CompileOptions options_;
};

TEST_F(Growing, OneProgramServesAllExtents) {
  const auto program = compiled(path_, bounds(kBound, kBound + 1));
  auto context = program->make_context();
  ASSERT_TRUE(context);
  std::vector<float> cache;
  for (int64_t n = 0; n <= kBound; ++n) cache = grown(**context, cache, n);
  // A shorter one again: earlier contents are not visible.
  const std::vector<float> nothing(static_cast<size_t>(kRows * 15 * kWidth), std::nanf(""));
  grown(**context, nothing, 15);
  for (const int64_t n : {14, 3, 4, 20, 0, 1})
    grown(**context, std::vector<float>(static_cast<size_t>(kRows * n * kWidth), 0.25F), n);
  EXPECT_EQ(program->facts().compilations, 1);
  EXPECT_EQ(program->outputs()[0].named[1].name, "total");
  EXPECT_EQ(program->outputs()[0].named[1].least, 2);
  EXPECT_THAT((*context)->set_extent("past", 21).error().message,
              HasSubstr("dimension 'past' is 21, wanted 0 to 20"));
  EXPECT_EQ(program->outputs()[0].named[1].most, kBound + 1);
}

TEST_F(Growing, ExtentsThatFollowAreChecked) {
  const auto program = compiled(path_, bounds(kBound, kBound + 1));
  auto context = program->make_context();
  ASSERT_TRUE(context);
  const std::vector<float> memory(100);
  std::vector<float> present(200), y(6);
  for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE((*context)->bind_input(i, memory.data()));
  ASSERT_TRUE((*context)->bind_output(0, present.data()));
  ASSERT_TRUE((*context)->bind_output(1, y.data()));
  for (const bool first : {true, false}) {  // in any order
    ASSERT_TRUE((*context)->set_extent(first ? "total" : "past", first ? 7 : 6));
    ASSERT_TRUE((*context)->set_extent(first ? "past" : "total", first ? 6 : 7));
    EXPECT_TRUE((*context)->run());
  }
  ASSERT_TRUE((*context)->set_extent("total", 9));
  EXPECT_THAT((*context)->run().error().message,
              HasSubstr("dimension 'total' is 9, wanted 7 (past + 1)"));
  OpenOptions open = bounds(kBound, kBound + 1);
  open.dims = {{"past", 4}, {"total", 4}};
  auto model = Model::open(path_, open);
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("dimension 'total' is 4, wanted 5 (past + 1)"));
  EXPECT_FALSE(Model::open(path_, bounds(kBound, kBound)));
}

// With names as exporters write them. Hinted shapes give the first extents.
TEST_F(Growing, ExpressionsFollow) {
  write("past + 1");
  OpenOptions open;
  open.bounds = {{"past", kBound}};
  open.hints = {{"past", {2, 3, 3}}, {"new", {2, 1, 3}}, {"weights", {4, 1}}};
  const auto program = compiled(path_, open);
  EXPECT_EQ(program->inputs()[2].dims, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(program->inputs()[2].named[0].name, "past + 1");
  auto context = program->make_context();
  ASSERT_TRUE(context);
  std::vector<float> cache;
  for (int64_t n = 0; n <= kBound; ++n) cache = grown(**context, cache, n);
}

// Outputs may use the memory of inputs.
TEST_F(Growing, CachesMayShareTheirMemory) {
  const auto program = compiled(path_, bounds(kBound, kBound + 1));
  auto context = program->make_context();
  ASSERT_TRUE(context);
  std::vector<float> cache(kRows * 21 * kWidth, 0), fresh(kRows * kWidth, 2), weights(21, 1),
      y(kRows * kWidth);
  for (int64_t n = 1; n <= kBound; ++n) {
    ASSERT_TRUE((*context)->set_extent("past", n));
    for (int64_t i = 0; i < 3; ++i)
      ASSERT_TRUE((*context)->bind_input(i, i == 0   ? cache.data()
                                            : i == 1 ? fresh.data()
                                                     : weights.data()));
    ASSERT_TRUE((*context)->bind_output(0, cache.data()));
    ASSERT_TRUE((*context)->bind_output(1, y.data()));
    ASSERT_TRUE((*context)->run());
    for (const float sum : y) ASSERT_EQ(sum, static_cast<float>(2 * n)) << n;
  }
}

TEST_F(Growing, AFileHasTheOneProgram) {
  const auto program = compiled(path_, bounds(kBound, kBound + 1));
  const std::string path = path_ + ".heddle";
  const Status saved = program->save(path);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(program->facts().compilations, 1);
  OpenOptions open;
  open.dims = {{"past", 3}};
  auto model = Model::open(path, open);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->inputs()[0].dims, (std::vector<int64_t>{2, 3, 3}));
  EXPECT_EQ((*model)->inputs()[2].dims, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ((*model)->outputs()[0].dims, (std::vector<int64_t>{2, 4, 3}));
  const auto loaded = compiled(path, {});
  auto context = loaded->make_context();
  ASSERT_TRUE(context);
  std::vector<float> cache(kRows * kWidth, 0.5F);
  for (int64_t n = 1; n <= kBound; ++n) cache = grown(**context, cache, n);
  std::remove(path.c_str());
}

// Slices of x [4, length, 3]: y, and its sum.
class Slices : public testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  std::unique_ptr<Model> opened(int64_t start, int64_t end) {
    import::testing::Model model;
    model.inputs = {value("x", kFloat, {"4", "length", "3"})};
    model.constants = {ints_tensor("start", {start}), ints_tensor("end", {end}),
                       ints_tensor("axis", {1})};
    model.nodes = {node("Neg", {"x"}, {"t"}), node("Slice", {"t", "start", "end", "axis"}, {"y"}),
                   node("ReduceSum", {"y", "axis"}, {"sum"}, {attr("keepdims", int64_t{0})})};
    model.outputs = {"y", "sum"};
    std::ofstream(path_, std::ios::binary) << model.bytes();
    OpenOptions open;
    open.bounds = {{"length", 40}};
    auto result = Model::open(path_, open);
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }

  // Checks every extent from `least` on: elements [start, end); negative numbers count from the
  // end.
  void check(int64_t start, int64_t end, int64_t least) {
    const auto model = opened(start, end);
    CompileOptions options;
    options.cache = "off";
    auto program = Program::compile(*model, options);
    ASSERT_TRUE(program) << program.error().message;
    auto context = (*program)->make_context();
    ASSERT_TRUE(context);
    for (int64_t n = least; n <= 40; ++n) {
      const int64_t from = start < 0 ? n + start : start;
      const int64_t count = std::min(n, end < 0 ? n + end : end) - from;
      std::vector<float> x(static_cast<size_t>(4 * n * 3)), sum(12),
          y(static_cast<size_t>(4 * count * 3) + 1, -7.0F);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 101);
      ASSERT_TRUE((*context)->set_extent("length", n));
      ASSERT_TRUE((*context)->bind_input(0, x.data()));
      ASSERT_TRUE((*context)->bind_output(0, y.data()));
      ASSERT_TRUE((*context)->bind_output(1, sum.data()));
      const Status status = (*context)->run();
      ASSERT_TRUE(status) << status.error().message;
      ASSERT_EQ(y.back(), -7.0F);
      for (int64_t row = 0; row < 4; ++row)
        for (int64_t c = 0; c < 3; ++c) {
          float wanted = 0;
          for (int64_t i = 0; i < count; ++i) {
            const float one = -x[size_t((row * n + from + i) * 3 + c)];
            ASSERT_EQ(y[size_t((row * count + i) * 3 + c)], one) << n << ": " << i;
            wanted += one;
          }
          ASSERT_EQ(sum[size_t(row * 3 + c)], wanted) << n;
        }
    }
    EXPECT_LE((*program)->facts().compilations, 4);  // for 1, 4, 16 and 40; not for each extent
    if (least == 1) return;
    EXPECT_THAT((*context)->set_extent("length", least - 1).error().message,
                HasSubstr("wanted " + std::to_string(least) + " to 40"));
  }

  std::string path_ = testing::TempDir() + "slices_" + std::to_string(::getpid()) + ".onnx";
};

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

TEST_F(Slices, TheLastElement) { check(-1, kEnd, 1); }
TEST_F(Slices, TheLastElements) { check(-3, kEnd, 3); }
TEST_F(Slices, AllButTheFirst) { check(1, kEnd, 1); }
TEST_F(Slices, AllButTheLast) { check(0, -1, 1); }
TEST_F(Slices, TheFirstElements) { check(0, 3, 3); }
TEST_F(Slices, SomeInTheMiddle) { check(2, -2, 4); }

}  // namespace
}  // namespace heddle::api
