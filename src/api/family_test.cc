// Models that are written for extents, through the C interface: [batch, length, 3] by a layer that
// merges its rows, as PyTorch writes it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "api/heddle.h"

namespace heddle::api {
namespace {

using ::testing::HasSubstr;

struct Writer {
  std::string text;
  int calls = 0, releases = 0;
  bool is_broken = false, is_other = false;
};

const char* text_at(void* context, const heddle_dim* extents, size_t count, const char** why) {
  auto* const writer = static_cast<Writer*>(context);
  ++writer->calls;
  if (writer->is_broken) {
    *why = "out of ink";
    return nullptr;
  }
  EXPECT_EQ(count, 2u);
  const int64_t b = extents[0].size, l = extents[1].size;  // by name
  EXPECT_STREQ(extents[0].name, "batch");
  const int64_t more = writer->is_other ? 1 : 0;
  writer->text = fmt::format(
      R"(HloModule layer
ENTRY e {{
  x = f32[{0},{1},3] parameter(0)
  w = f32[3,2] parameter(1)
  rows = f32[{2},3] reshape(x)
  d = f32[{2},2] dot(rows, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{2},2] tanh(d)
  ROOT y = f32[{0},{1},2] reshape(t)
}})",
      b, l + more, b * (l + more));
  return writer->text.c_str();
}

void release(void* context) { ++static_cast<Writer*>(context)->releases; }

std::string taken(heddle_status* status) {
  const std::string message = status == nullptr ? "" : heddle_status_message(status);
  heddle_status_free(status);
  return message;
}

class FamilyTest : public ::testing::Test {
 protected:
  ~FamilyTest() override {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }

  std::string open() {
    const heddle_family_dim dims[] = {{"arg0", 0, "batch"}, {"arg0", 1, "length"}};
    heddle_family family{};
    family.struct_size = sizeof family;
    family.name = "layer";
    family.dims = dims;
    family.dim_count = 2;
    family.text_at = text_at;
    family.context = &writer_;
    family.release = release;
    const int64_t first[] = {2, 3, 3};
    const heddle_shape hint{"arg0", first, 3};
    heddle_open_options options{};
    options.struct_size = sizeof options;
    options.late = 1;
    options.hints = &hint;
    options.hint_count = 1;
    return taken(heddle_model_of_family(&family, &options, &model_));
  }

  void compile() {
    heddle_compile_options options{};
    options.struct_size = sizeof options;
    options.cache = "off";
    ASSERT_EQ(taken(heddle_compile(model_, &options, &program_)), "");
    ASSERT_EQ(taken(heddle_context_create(program_, &context_)), "");
  }

  // Whether all rows are tanh of the sum of what they have.
  std::string run(int64_t batch, int64_t length) {
    std::vector<float> x(static_cast<size_t>(batch * length * 3));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 10;
    const std::vector<float> w{1, 0, 1, 0, 1, 0};
    const int64_t dims[] = {batch, length, 3};
    std::string error = taken(heddle_context_set_input_shape(context_, 0, dims, 3));
    if (error.empty()) error = taken(heddle_context_bind_input(context_, 0, x.data()));
    if (error.empty()) error = taken(heddle_context_bind_input(context_, 1, w.data()));
    if (error.empty()) error = taken(heddle_context_prepare(context_));
    if (!error.empty()) return error;
    std::vector<float> y(static_cast<size_t>(batch * length * 2), -1);
    error = taken(heddle_context_bind_output(context_, 0, y.data()));
    if (error.empty()) error = taken(heddle_context_run(context_));
    for (size_t row = 0; error.empty() && row < y.size() / 2; ++row)
      if (std::abs(y[2 * row] - std::tanh(x[3 * row] + x[3 * row + 1] + x[3 * row + 2])) > 1e-5 ||
          y[2 * row + 1] != 0)
        error = fmt::format("row {} is wrong", row);
    return error;
  }

  int64_t compilations() const {
    heddle_program_info info{};
    info.struct_size = sizeof info;
    heddle_program_get_info(program_, &info);
    return info.compilations;
  }

  Writer writer_;
  heddle_model* model_ = nullptr;
  heddle_program* program_ = nullptr;
  heddle_context* context_ = nullptr;
};

TEST_F(FamilyTest, SizesShareProgramsThoughTheirRowsAreMerged) {
  ASSERT_EQ(open(), "");
  heddle_port_dim dim{};
  dim.struct_size = sizeof dim;
  ASSERT_EQ(taken(heddle_model_input_dim(model_, 0, 1, &dim)), "");
  EXPECT_STREQ(dim.name, "length");
  compile();
  for (int64_t batch = 2; batch < 5; ++batch)
    for (int64_t length = 2; length < 40; length += 3) ASSERT_EQ(run(batch, length), "");
  EXPECT_LE(compilations(), 5);
}

TEST_F(FamilyTest, TheFunctionIsReleasedWithTheLastThatMayAsk) {
  ASSERT_EQ(open(), "");
  compile();
  heddle_model_free(std::exchange(model_, nullptr));
  EXPECT_EQ(writer_.releases, 0);
  EXPECT_EQ(run(2, 9), "");
  heddle_context_free(std::exchange(context_, nullptr));
  heddle_program_free(std::exchange(program_, nullptr));
  EXPECT_EQ(writer_.releases, 1);
}

TEST_F(FamilyTest, NoText) {
  writer_.is_broken = true;
  EXPECT_THAT(open(), HasSubstr("there is no text for batch=2 length=3: out of ink"));
  EXPECT_EQ(writer_.releases, 1);
}

TEST_F(FamilyTest, AnotherShapeThanThatOfTheRun) {
  writer_.is_other = true;
  EXPECT_THAT(open(), HasSubstr("input arg0 is f32[2,4,3] in the text for these extents"));
}

TEST_F(FamilyTest, ATextThatBreaksLaterLeavesTheProgramsThatThereAre) {
  ASSERT_EQ(open(), "");
  compile();
  EXPECT_EQ(run(2, 3), "");
  writer_.is_broken = true;
  EXPECT_THAT(run(2, 5), HasSubstr("out of ink"));
  EXPECT_EQ(run(2, 3), "");
}

}  // namespace
}  // namespace heddle::api
