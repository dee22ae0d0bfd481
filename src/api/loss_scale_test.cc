// Loss scaling of a training step, through the C interface: results equal those without it, a step
// with non-finite gradients changes nothing, and the scale goes up and down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "api/heddle.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two layers, mean squared error, plain gradient descent.
constexpr const char* kStep =
    R"(HloModule step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  w1 = f32[8,16] parameter(0) w2 = f32[16,4] parameter(1)
  x = f32[32,8] parameter(2) t = f32[32,4] parameter(3)
  zero = f32[] constant(0) z = f32[32,16] broadcast(zero), dimensions={}
  h0 = f32[32,16] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[32,16] maximum(h0, z)
  y = f32[32,4] dot(h, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[32,4] subtract(y, t) sq = f32[32,4] multiply(d, d)
  all = f32[] reduce(sq, zero), dimensions={0,1}, to_apply=sum
  n = f32[] constant(128) loss = f32[] divide(all, n)
  two = f32[] constant(0.015625) twos = f32[32,4] broadcast(two), dimensions={}
  dd = f32[32,4] multiply(d, twos)
  g2 = f32[16,4] dot(h, dd), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dh = f32[32,16] dot(dd, w2), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  on = pred[32,16] compare(h0, z), direction=GT
  dh0 = f32[32,16] select(on, dh, z)
  g1 = f32[8,16] dot(x, dh0), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  rate = f32[] constant(0.125)
  r1 = f32[8,16] broadcast(rate), dimensions={} r2 = f32[16,4] broadcast(rate), dimensions={}
  s1 = f32[8,16] multiply(g1, r1) s2 = f32[16,4] multiply(g2, r2)
  n1 = f32[8,16] subtract(w1, s1) n2 = f32[16,4] subtract(w2, s2)
  ROOT r = (f32[8,16], f32[16,4], f32[]) tuple(n1, n2, loss) })";

constexpr const char* kForward = R"(HloModule forward
ENTRY e { x = f32[8,8] parameter(0) w = f32[8,8] parameter(1)
  ROOT y = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} })";

template <typename T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

std::string message(heddle_status* status) {
  const std::string text = status == nullptr ? "" : heddle_status_message(status);
  heddle_status_free(status);
  return text;
}

class Step {
 public:
  Step(const char* text, const char* loss_scale, const char* precision = nullptr) {
    EXPECT_EQ(message(heddle_model_parse("step", text, std::strlen(text), nullptr, &model_)), "");
    auto options = sized<heddle_compile_options>();
    options.loss_scale = loss_scale;
    options.precision = precision;
    options.cache = "off";
    options.threads = 1;
    failure = message(heddle_compile(model_, &options, &program_));
    if (!failure.empty()) return;
    EXPECT_EQ(message(heddle_context_create(program_, &context_)), "");
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7F * static_cast<float>(i));
    for (size_t i = 0; i < t.size(); ++i) t[i] = std::cos(1.3F * static_cast<float>(i));
    for (size_t i = 0; i < w1.size(); ++i) w1[i] = 0.3F * std::sin(2.1F * static_cast<float>(i));
    for (size_t i = 0; i < w2.size(); ++i) w2[i] = 0.3F * std::cos(1.7F * static_cast<float>(i));
  }
  ~Step() {
    heddle_context_free(context_);
    heddle_program_free(program_);
    heddle_model_free(model_);
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  void run() {
    float* inputs[] = {w1.data(), w2.data(), x.data(), t.data()};
    float* outputs[] = {w1.data(), w2.data(), &loss};
    for (int i = 0; i < 4; ++i)
      ASSERT_EQ(message(heddle_context_bind_input(context_, i, inputs[i])), "");
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(message(heddle_context_bind_output(context_, i, outputs[i])), "");
    ASSERT_EQ(message(heddle_context_run(context_)), "");
  }
  int64_t states() const {
    auto info = sized<heddle_program_info>();
    heddle_program_get_info(program_, &info);
    return info.states;
  }
  std::vector<float> state() const {
    std::vector<float> numbers(5);
    EXPECT_EQ(message(heddle_program_read_state(program_, 0, numbers.data(), 20)), "");
    return numbers;
  }
  void set_state(std::vector<float> numbers) {
    EXPECT_EQ(message(heddle_program_write_state(program_, 0, numbers.data(), 20)), "");
  }

  std::string failure;
  std::vector<float> w1 = std::vector<float>(128), w2 = std::vector<float>(64),
                     x = std::vector<float>(256), t = std::vector<float>(128);
  float loss = 0;
  heddle_program* program_ = nullptr;

 private:
  heddle_model* model_ = nullptr;
  heddle_context* context_ = nullptr;
};

TEST(LossScale, PowersOfTwoLeaveEveryBit) {
  Step plain(kStep, "none"), fixed(kStep, "1024"), automatic(kStep, "auto");
  for (int i = 0; i < 20; ++i) {
    plain.run();
    fixed.run();
    automatic.run();
  }
  EXPECT_EQ(plain.w1, fixed.w1);
  EXPECT_EQ(plain.w2, fixed.w2);
  EXPECT_EQ(plain.w1, automatic.w1);
  EXPECT_EQ(plain.w2, automatic.w2);
  EXPECT_EQ(plain.loss, automatic.loss);
  EXPECT_EQ(plain.states(), 0);
  EXPECT_EQ(fixed.states(), 0);
  EXPECT_EQ(automatic.states(), 1);
  EXPECT_THAT(automatic.state(), ElementsAre(32768, 20, 0, 0, -1));
  auto port = sized<heddle_port>();
  heddle_program_state(automatic.program_, 0, &port);
  EXPECT_STREQ(port.name, "loss_scale");
  EXPECT_EQ(port.bytes, 20);
}

TEST(LossScale, AStepThatIsNotFiniteChangesNothing) {
  Step step(kStep, "auto");
  step.run();
  const std::vector<float> w1 = step.w1, w2 = step.w2;
  const float good = step.t[5];
  step.t[5] = std::numeric_limits<float>::infinity();
  step.run();
  EXPECT_EQ(step.w1, w1);
  EXPECT_EQ(step.w2, w2);
  EXPECT_THAT(step.state(), ElementsAre(16384, 0, 1, 1, 0));
  step.t[5] = std::numeric_limits<float>::quiet_NaN();
  step.run();
  EXPECT_THAT(step.state(), ElementsAre(8192, 0, 2, 2, 0));
  step.t[5] = good;
  step.run();
  EXPECT_NE(step.w1, w1);
  EXPECT_THAT(step.state(), ElementsAre(8192, 1, 2, 0, -1));
}

TEST(LossScale, NamesTheFirstGradientThatIsNotFinite) {
  Step step(kStep, "auto");
  // Its hidden value is 0 where the second layer's is not: only the first layer's gradient is bad.
  for (float& value : step.w2) value = std::abs(value);
  step.x[0] = std::numeric_limits<float>::infinity();
  step.run();
  EXPECT_EQ(step.state()[4], 0);
  step.set_state({4, 0, 0, 0, -1});
  EXPECT_THAT(step.state(), ElementsAre(4, 0, 0, 0, -1));
}

TEST(LossScale, GrowsAfterManyGoodStepsAndHasLimits) {
  Step step(kStep, "auto");
  step.set_state({1024, 1999, 7, 0, -1});
  step.run();
  EXPECT_THAT(step.state(), ElementsAre(2048, 0, 7, 0, -1));
  step.set_state({16777216, 1999, 0, 0, -1});
  step.run();
  EXPECT_THAT(step.state(), ElementsAre(16777216, 0, 0, 0, -1));
  step.set_state({1.0F / 1024, 3, 0, 0, -1});
  step.t[0] = std::numeric_limits<float>::infinity();
  step.run();
  EXPECT_THAT(step.state(), ElementsAre(1.0F / 1024, 0, 1, 1, 0));
}

// Gradients of about 1e-9: f16 has nothing between 0 and 6e-8.
TEST(LossScale, KeepsWhatF16WouldFlush) {
  const auto moved = [](float scale) {
    Step step(kStep, "auto", "f16");
    EXPECT_EQ(step.failure, "");
    step.set_state({scale, 0, 0, 0, -1});
    for (float& value : step.t) value *= 1e-6F;
    for (float& value : step.w2) value *= 1e-6F;
    const std::vector<float> before = step.w2;
    step.run();
    int count = 0;
    for (size_t i = 0; i < before.size(); ++i) count += step.w2[i] != before[i] ? 1 : 0;
    return count;
  };
  EXPECT_GT(moved(32768), 60);
  EXPECT_LT(moved(1), 10);
}

TEST(LossScale, F16StepsHaveOneUnlessItIsSwitchedOff) {
  EXPECT_EQ(Step(kStep, nullptr, "f16").states(), 1);
  EXPECT_EQ(Step(kStep, nullptr, "bf16").states(), 0);
  EXPECT_EQ(Step(kStep, "none", "f16").states(), 0);
  EXPECT_EQ(Step(kForward, nullptr, "f16").states(), 0);
}

TEST(LossScale, SaysWhatItWants) {
  EXPECT_THAT(Step(kForward, "auto").failure, HasSubstr("is not a training step: wanted"));
  for (const char* wrong : {"1000", "0", "-2", "nan", "inf", "1024x", ""})
    EXPECT_THAT(Step(kStep, *wrong != 0 ? wrong : "yes").failure,
                HasSubstr("wanted none, auto or a power of two"))
        << wrong;
  Step step(kStep, "auto");
  char byte = 0;
  EXPECT_THAT(message(heddle_program_read_state(step.program_, 0, &byte, 1)),
              HasSubstr("bytes is 1; wanted the 20 of 'loss_scale'"));
  EXPECT_THAT(message(heddle_program_read_state(step.program_, 1, &byte, 1)), HasSubstr("number"));
}

}  // namespace
}  // namespace heddle
