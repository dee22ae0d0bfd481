// Both directions: correct results that differ by roundings are within the measured tolerance,
// wrong ones are not, however small the error.
#include "api/second_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "api/tolerance.h"
#include "hlo/text.h"
#include "interp/interp.h"

namespace heddle::api {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// A model, its inputs and the reference's result.
struct Case {
  Case(const std::string& text, std::vector<Literal> inputs) : values(std::move(inputs)) {
    auto parsed = Model::parse("case.hlo", text, {});
    EXPECT_TRUE(parsed) << parsed.error().message;
    model = std::move(*parsed);
    auto result = interp::evaluate(*model->module(), values);
    EXPECT_TRUE(result) << result.error().message;
    want = *result;
    std::vector<const void*> bytes;
    for (const Literal& value : values) bytes.push_back(value.data());
    reference.emplace(*model, bytes);
  }
  // Whether `check` accepts it, with the derived or a measured tolerance.
  bool passes(const Literal& got) {
    const tensor::Tolerance derived = model->tolerance(0);
    if (tensor::compare(got, want, derived).equal) return true;
    for (const Measure measure : kMeasures) {
      auto wider = reference->tolerance(measure, 0, derived, want);
      EXPECT_TRUE(wider) << wider.error().message;
      if (tensor::compare(got, want, *wider).equal) return true;
    }
    return false;
  }
  bool passes_derived(const Literal& got) const {
    return tensor::compare(got, want, model->tolerance(0)).equal;
  }

  std::vector<Literal> values;
  std::unique_ptr<Model> model;
  Literal want;
  std::optional<SecondReference> reference;
};

template <typename T>
Literal random(Type type, std::vector<int64_t> extents, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Literal made(Shape::array(type, std::move(extents)));
  for (T& x : made.mutable_values<T>()) x = static_cast<T>(uniform(generator));
  return made;
}

constexpr const char* kSoftmax = R"(HloModule softmax
sum { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }
max { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] maximum(a, b) }
ENTRY e {
  a = f64[64,96] parameter(0)
  b = f64[96,33] parameter(1)
  d = f64[64,33] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f64[] constant(100)
  cs = f64[64,33] broadcast(c), dimensions={}
  z = f64[64,33] multiply(d, cs)
  low = f64[] constant(-inf)
  m = f64[64] reduce(z, low), dimensions={1}, to_apply=max
  mb = f64[64,33] broadcast(m), dimensions={0}
  s = f64[64,33] subtract(z, mb)
  x = f64[64,33] exponential(s)
  zero = f64[] constant(0)
  t = f64[64] reduce(x, zero), dimensions={1}, to_apply=sum
  tb = f64[64,33] broadcast(t), dimensions={0}
  ROOT y = f64[64,33] divide(x, tb)
})";

// The same, with every dot summed in eight partial sums as vector code does. `scale`: 100 is
// correct.
Literal softmax_in_strands(const Case& c, double scale) {
  const auto a = c.values[0].values<double>(), b = c.values[1].values<double>();
  Literal made(c.want.shape());
  auto y = made.mutable_values<double>();
  for (size_t i = 0; i < 64; ++i) {
    double z[33], most = -INFINITY, sum = 0;
    for (size_t j = 0; j < 33; ++j) {
      double strands[8] = {}, total = 0;
      for (size_t k = 96; k-- > 0;)
        strands[k % 8] = std::fma(a[i * 96 + k], b[k * 33 + j], strands[k % 8]);
      for (const double strand : strands) total += strand;
      z[j] = total * scale;
      most = std::max(most, z[j]);
    }
    for (size_t j = 0; j < 33; ++j) sum += y[i * 33 + j] = std::exp(z[j] - most);
    for (size_t j = 0; j < 33; ++j) y[i * 33 + j] /= sum;
  }
  return made;
}

TEST(SecondReference, F64IsMeasuredByItsRoundings) {
  int differ = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Case c(kSoftmax,
           {random<double>(Type::f64, {64, 96}, seed), random<double>(Type::f64, {96, 33}, ~seed)});
    const Literal right = softmax_in_strands(c, 100);
    differ += !c.passes_derived(right);
    EXPECT_TRUE(c.passes(right)) << seed;
    // A small error, then an error in one place.
    EXPECT_FALSE(c.passes(softmax_in_strands(c, 100 * (1 + 1e-10)))) << seed;
    Literal one = c.want;
    auto y = one.mutable_values<double>();
    *std::max_element(y.begin(), y.end()) *= 1 + 1e-9;
    EXPECT_FALSE(c.passes(one)) << seed;
  }
  EXPECT_GT(differ, 0);  // otherwise the measure is not needed
}

constexpr const char* kCancels = R"(HloModule cancels
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
ENTRY e {
  x = f32[4,48] parameter(0)
  q = f32[4,48] multiply(x, x)
  t = f32[4,48] tanh(q)
  s = f32[4,48] subtract(t, q)
  low = f32[] constant(-inf)
  ROOT m = f32[4] reduce(s, low), dimensions={1}, to_apply=max
})";

// tanh(q) - q is 0 or a rounding error of q for small q: the scale of the error is that of q.
TEST(SecondReference, WhatCancelsIsMeasuredByItsOperands) {
  Literal x = random<float>(Type::f32, {4, 48}, 1);
  for (size_t row = 0; row < 4; ++row) x.mutable_values<float>()[row * 48 + 7] = 0.0039f;
  Case c(kCancels, {x});
  for (const float value : c.want.values<float>()) EXPECT_EQ(value, 0);
  const auto plus = [&](float error) {
    Literal got = c.want;
    got.mutable_values<float>()[2] += error;
    return got;
  };
  EXPECT_FALSE(c.passes_derived(plus(1.8e-12f)));
  EXPECT_TRUE(c.passes(plus(1.8e-12f)));  // the last place of 1.5e-5
  EXPECT_FALSE(c.passes(plus(1e-7f)));
  EXPECT_FALSE(c.passes(plus(-1e-3f)));
}

// For a well-conditioned model the tolerance is not widened.
TEST(SecondReference, PlainProductsStayStrict) {
  Case c(R"(HloModule product
ENTRY e {
  a = f32[32,256] parameter(0)
  b = f32[256,40] parameter(1)
  ROOT d = f32[32,40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
         {random<float>(Type::f32, {32, 256}, 5), random<float>(Type::f32, {256, 40}, 6)});
  Literal got = c.want;
  got.mutable_values<float>()[77] += 0.01f;
  EXPECT_FALSE(c.passes(got));
  got = c.want;
  got.mutable_values<float>()[77] = std::nextafter(got.values<float>()[77], 1e9f);
  EXPECT_TRUE(c.passes(got));
}

// The same seed gives the same result; exact operators are not disturbed.
TEST(SecondReference, DisturbanceIsDeterministicAndSparesWhatIsExact) {
  Case c(R"(HloModule exact
ENTRY e {
  a = f32[64] parameter(0)
  n = f32[64] negate(a)
  ROOT r = f32[64] maximum(n, a)
})",
         {random<float>(Type::f32, {64}, 9)});
  const auto wider = c.reference->tolerance(Measure::roundings, 0, {}, c.want);
  ASSERT_TRUE(wider);
  EXPECT_EQ(wider->relative, 0);
  EXPECT_EQ(wider->absolute, 0);
  Case d(kCancels, {random<float>(Type::f32, {4, 48}, 3)});
  Case e(kCancels, {random<float>(Type::f32, {4, 48}, 3)});
  EXPECT_EQ(d.reference->tolerance(Measure::roundings, 0, {}, d.want)->absolute,
            e.reference->tolerance(Measure::roundings, 0, {}, e.want)->absolute);
}

}  // namespace
}  // namespace heddle::api
