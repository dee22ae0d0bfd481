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
  bool is_broken = false, is_other = false, is_attention = false;
};

// An attention with residual and norm: rows are packed around it and spread inside, keys behind the
// length count for nothing. B and T stand for the extents, R for their product.
constexpr const char* kAttention = R"(HloModule attention
plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY e {
  x = f32[B,T,32] parameter(0)
  w = f32[32,32] parameter(1)
  u = f32[32,32] parameter(2)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  rows = f32[R,32] reshape(x)
  q = f32[R,32] dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[R,32] dot(rows, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  heads = f32[B,T,2,16] reshape(q)
  keys = f32[B,T,2,16] reshape(k)
  s = f32[B,2,T,T] dot(heads, keys), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  m = f32[B,2,T] reduce(s, low), dimensions={3}, to_apply=most
  ms = f32[B,2,T,T] broadcast(m), dimensions={0,1,2}
  d = f32[B,2,T,T] subtract(s, ms)
  p = f32[B,2,T,T] exponential(d)
  n = f32[B,2,T] reduce(p, zero), dimensions={3}, to_apply=plus
  ns = f32[B,2,T,T] broadcast(n), dimensions={0,1,2}
  a = f32[B,2,T,T] divide(p, ns)
  o = f32[B,2,T,16] dot(a, keys), lhs_batch_dims={0,1}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={1}
  h = f32[B,T,2,16] transpose(o), dimensions={0,2,1,3}
  joined = f32[R,32] reshape(h)
  v = f32[R,32] dot(joined, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[B,T,32] reshape(v)
  r = f32[B,T,32] add(x, y)
  sq = f32[B,T,32] multiply(r, r)
  e = f32[B,T] reduce(sq, zero), dimensions={2}, to_apply=plus
  root = f32[B,T] sqrt(e)
  roots = f32[B,T,32] broadcast(root), dimensions={0,1}
  ROOT result = f32[B,T,32] divide(r, roots)
})";

std::string attention_at(int64_t batch, int64_t length) {
  std::string text = kAttention;
  for (const auto& [letter, extent] :
       {std::pair("B", batch), std::pair("T", length), std::pair("R", batch * length)})
    for (const char* after : {",", "]"})
      for (const char* before : {"[", ","}) {
        const std::string from = std::string(before) + letter + after;
        const std::string to = before + std::to_string(extent) + after;
        for (size_t at; (at = text.find(from)) != std::string::npos;)
          text.replace(at, from.size(), to);
      }
  return text;
}

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
  if (writer->is_attention) {
    writer->text = attention_at(b, l);
    return writer->text.c_str();
  }
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
    const int64_t first[] = {2, 3, writer_.is_attention ? 32 : 3};
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

  // Random rows through a program for bounds, and through one for these extents.
  std::string compare(int64_t batch, int64_t length) {
    const std::string text = attention_at(batch, length);
    heddle_model* model = nullptr;
    heddle_compile_options options{};
    options.struct_size = sizeof options;
    options.cache = "off";
    options.device = "interp";
    heddle_program* program = nullptr;
    heddle_context* exact = nullptr;
    std::vector<float> x(static_cast<size_t>(batch * length * 32)), w(32 * 32), u(32 * 32);
    void* const buffers[] = {x.data(), w.data(), u.data()};
    std::vector<float> wanted(x.size()), y(x.size());
    std::string error =
        taken(heddle_model_parse("exact", text.data(), text.size(), nullptr, &model));
    if (error.empty()) error = taken(heddle_model_random_inputs(model, 7, buffers));
    if (error.empty()) error = taken(heddle_compile(model, &options, &program));
    if (error.empty()) error = taken(heddle_context_create(program, &exact));
    const int64_t dims[] = {batch, length, 32};
    if (error.empty()) error = taken(heddle_context_set_input_shape(context_, 0, dims, 3));
    for (heddle_context* context : {exact, context_}) {
      for (int64_t i = 0; error.empty() && i < 3; ++i)
        error = taken(heddle_context_bind_input(context, i, buffers[i]));
      if (error.empty() && context == context_) error = taken(heddle_context_prepare(context));
      float* const to = context == exact ? wanted.data() : y.data();
      if (error.empty()) error = taken(heddle_context_bind_output(context, 0, to));
      if (error.empty()) error = taken(heddle_context_run(context));
    }
    for (size_t i = 0; error.empty() && i < y.size(); ++i)
      if (!(std::abs(y[i] - wanted[i]) < 1e-4)) error = fmt::format("element {} is wrong", i);
    heddle_context_free(exact);
    heddle_program_free(program);
    heddle_model_free(model);
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

TEST_F(FamilyTest, RowsOfAllSequencesAreOneMatrixAroundAnAttention) {
  writer_.is_attention = true;
  ASSERT_EQ(open(), "");
  compile();
  for (int64_t batch = 2; batch < 6; ++batch)
    for (int64_t length = 2; length < 40; length += 5)
      ASSERT_EQ(compare(batch, length), "") << batch << " by " << length;
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
