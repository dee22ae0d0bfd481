// Recorded ranges of a model's values: independent of the number of programs, for each sample.
#include "api/value_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::api {
namespace {

using tensor::Literal;
using testing::HasSubstr;

constexpr const char* kLayers = R"(HloModule layers
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[16,8] parameter(0) n = s32[4] parameter(1)
  u = f32[8,8] constant({...}) v = f32[8,8] constant({...}) zero = f32[] constant(0)
  a = f32[16,8] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[16] reduce(a, zero), dimensions={1}, to_apply=sum
  b = f32[16,8] dot(a, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[16], f32[16,8], s32[4]) tuple(s, b, n) })";

constexpr const char* kDraw = R"(HloModule draw
ENTRY e { x = f32[64,64] parameter(0) lo = f32[] constant(3) hi = f32[] constant(4)
  r = f32[64,64] rng(lo, hi), distribution=rng_uniform
  ROOT y = f32[64,64] dot(x, r), lhs_contracting_dims={1}, rhs_contracting_dims={0} })";

std::unique_ptr<Model> model_of(const char* text) {
  OpenOptions open;
  open.random_constants = true;
  auto model = Model::parse("model", text, open);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

// Sample s has s + 1 everywhere.
ValueRunOptions runs_of(const Model& model, int64_t samples) {
  ValueRunOptions runs;
  runs.samples = samples;
  runs.inputs = [&model](int64_t sample) -> Result<std::vector<Literal>> {
    std::vector<Literal> all;
    for (const Port& port : model.inputs()) {
      all.emplace_back(port.shape);
      for (int64_t i = 0; i < all.back().elems(); ++i)
        port.shape.type() == tensor::Type::f32 ? all.back().set_f64(i, double(sample + 1))
                                               : all.back().set_s64(i, sample);
    }
    return all;
  };
  return runs;
}

const precision::ValueRange& seen_of(const SeenValues& all, const std::string& name) {
  for (const SeenValue& value : all.values)
    if (value.name.starts_with(name + " ")) return value.seen;
  ADD_FAILURE() << name;
  static const precision::ValueRange none;
  return none;
}

TEST(ValueRuns, AddUpOverSamplesAndPrograms) {
  const std::unique_ptr<Model> model = model_of(kLayers);
  ValueRunOptions runs = runs_of(*model, 3);
  const auto together = run_values(*model, {}, runs);
  ASSERT_TRUE(together) << together.error().message;
  EXPECT_EQ(together->programs, 1);
  EXPECT_EQ(together->runs, 3);
  EXPECT_EQ(seen_of(*together, "x").most, 3);
  EXPECT_EQ(seen_of(*together, "x").elements, 3 * 16 * 8);
  EXPECT_EQ(seen_of(*together, "x").below(1), 16 * 8);
  EXPECT_EQ(seen_of(*together, "a").elements, 3 * 16 * 8);
  EXPECT_EQ(seen_of(*together, "s").elements, 3 * 16);
  runs.most_bytes = 1;
  const auto apart = run_values(*model, {}, runs);
  ASSERT_TRUE(apart) << apart.error().message;
  EXPECT_GE(apart->programs, 4);
  ASSERT_EQ(apart->values.size(), together->values.size());
  for (size_t i = 0; i < apart->values.size(); ++i) {
    EXPECT_EQ(apart->values[i].name, together->values[i].name);
    EXPECT_EQ(apart->values[i].seen, together->values[i].seen) << apart->values[i].name;
  }
}

TEST(ValueRuns, BeginStatesAnew) {
  const std::unique_ptr<Model> model = model_of(kDraw);
  const auto once = run_values(*model, {}, runs_of(*model, 1));
  ASSERT_TRUE(once) << once.error().message;
  const auto again = run_values(*model, {}, runs_of(*model, 1));
  ASSERT_TRUE(again) << again.error().message;
  for (size_t i = 0; i < once->values.size(); ++i)
    EXPECT_EQ(once->values[i].seen, again->values[i].seen) << once->values[i].name;
  EXPECT_GT(seen_of(*once, "y").most, 64 * 3);
}

TEST(ValueRuns, CanBeStopped) {
  const std::unique_ptr<Model> model = model_of(kLayers);
  ValueRunOptions runs = runs_of(*model, 5);
  int64_t left = 2;
  runs.progress = [&](int64_t, int64_t all) {
    EXPECT_EQ(all, 5);
    return left-- > 0;
  };
  const auto stopped = run_values(*model, {}, runs);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::cancelled);
  EXPECT_THAT(stopped.error().message, HasSubstr("2 of 5 runs"));
}

TEST(ValueRuns, NeedAStepOfTrainingForGradients) {
  const std::unique_ptr<Model> model = model_of(kLayers);
  ValueRunOptions runs = runs_of(*model, 1);
  runs.gradients = true;
  const auto none = run_values(*model, {}, runs);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::user);
  EXPECT_THAT(none.error().message, HasSubstr("layers is not a training step"));
}

}  // namespace
}  // namespace heddle::api
