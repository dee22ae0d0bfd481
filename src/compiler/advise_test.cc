#include "compiler/advise.h"

#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::compiler {
namespace {

AdviceReport advice_for(const std::string& entry, const Measure& measure = {}) {
  auto module = hlo::parse_module("HloModule m\nENTRY e {\n" + entry + "\n}\n");
  HEDDLE_CHECK(module.has_value(), "{}", module.error().message);
  auto target = target::find_target("spr");
  auto report = advise(std::move(*module), *target, {}, measure);
  HEDDLE_CHECK(report.has_value(), "{}", report.error().message);
  return std::move(*report);
}

const Advice* find(const AdviceReport& report, const std::string& kind) {
  for (const Advice& advice : report.advice)
    if (advice.kind == kind) return &advice;
  return nullptr;
}

std::string product(int64_t rows, int64_t columns, int64_t depth, const std::string& behind) {
  return fmt::format(
      "x = f32[{0},{2}] parameter(0)\nw = f32[{2},{1}] constant({{...}})\nd = f32[{0},{1}] dot(x, "
      "w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\nROOT y = f32[{0},{1}] {3}",
      rows, columns, depth, behind);
}

// A product with max(d, 0) as epilogue.
std::string rectified(int64_t rows, int64_t columns, int64_t depth) {
  std::string entry = product(rows, columns, depth, "maximum(d, z)");
  return entry.insert(entry.find("ROOT"),
                      fmt::format("c = f32[] constant(0)\nz = f32[{},{}] broadcast(c), "
                                  "dimensions={{}}\n",
                                  rows, columns));
}

TEST(Advise, ColumnsThatFillNoVector) {
  const AdviceReport odd = advice_for(product(256, 24, 128, "negate(d)"));
  const Advice* advice = find(odd, "alignment");
  ASSERT_NE(advice, nullptr);
  // Each choice has the gain that the model of its own shape predicts.
  EXPECT_EQ(advice->text, "24 columns cost as much as 32");
  ASSERT_EQ(advice->choices.size(), 2u);
  const double products_of_32 = advice_for(product(256, 32, 128, "negate(d)")).product_ns;
  const double products_of_16 = advice_for(product(256, 16, 128, "negate(d)")).product_ns;
  EXPECT_EQ(advice->choices[0].name, "widen to 32");
  EXPECT_EQ(advice->choices[0].gain_ns, 0);
  EXPECT_NEAR(products_of_32, odd.product_ns, 0.05 * odd.product_ns);
  EXPECT_EQ(advice->choices[1].name, "narrow to 16");
  EXPECT_NEAR(advice->choices[1].gain_ns, odd.product_ns - products_of_16, 0.1 * odd.product_ns);
  EXPECT_EQ(advice->gain_ns, advice->choices[1].gain_ns);
  EXPECT_EQ(find(advice_for(product(256, 32, 128, "negate(d)")), "alignment"), nullptr);
  // There is nothing narrower than one vector.
  const AdviceReport few = advice_for(product(256, 2, 128, "negate(d)"));
  const Advice* only = find(few, "alignment");
  EXPECT_TRUE(only == nullptr || only->choices.size() == 1);
}

const Choice& choice(const Advice& advice, const std::string& name) {
  for (const Choice& choice : advice.choices)
    if (choice.name == name) return choice;
  HEDDLE_CHECK(false, "no choice {}", name);
}

TEST(Advise, EachActivationHasAPrice) {
  for (const std::string& own : {product(256, 64, 64, "erf(d)"), rectified(256, 64, 64)}) {
    const AdviceReport report = advice_for(own);
    const Advice* advice = find(report, "activation");
    ASSERT_NE(advice, nullptr) << own;
    EXPECT_FALSE(advice->measured);
    ASSERT_EQ(advice->choices.size(), 5u);
    for (const Choice& one : advice->choices) EXPECT_GT(one.price_ns, 0) << one.name;
    EXPECT_LT(choice(*advice, "ReLU").price_ns, choice(*advice, "Hardswish").price_ns);
    EXPECT_LT(choice(*advice, "Hardswish").price_ns, choice(*advice, "SiLU").price_ns);
    EXPECT_LT(choice(*advice, "SiLU").price_ns, choice(*advice, "Softplus").price_ns);
    EXPECT_GT(choice(*advice, "GELU").price_ns, choice(*advice, "Hardswish").price_ns);
    // The gain of a choice: the price of the present activation minus that of the choice.
    const double now = choice(*advice, "ReLU").gain_ns + choice(*advice, "ReLU").price_ns;
    for (const Choice& one : advice->choices)
      EXPECT_NEAR(one.gain_ns + one.price_ns, now, 1e-6) << one.name;
  }
  const double erf = find(advice_for(product(256, 64, 64, "erf(d)")), "activation")->gain_ns;
  const double relu = find(advice_for(rectified(256, 64, 64)), "activation")->gain_ns;
  EXPECT_GT(erf, relu);
}

// Prices are measured if possible: the kernel with each activation, and without one.
TEST(Advise, ActivationsAreMeasured) {
  std::vector<std::string> ran;
  const AdviceReport report =
      advice_for(product(256, 64, 64, "erf(d)"), [&](const hlo::Module& module) -> Result<double> {
        const std::string text = hlo::to_string(module);
        ran.push_back(text);
        EXPECT_NE(text.find(" dot("), std::string::npos);
        return 1000.0 + 100.0 * static_cast<double>(module.entry()->instrs().size());
      });
  ASSERT_EQ(ran.size(), 7u);  // bare, its own, and five
  EXPECT_EQ(ran[0].find("erf("), std::string::npos);
  EXPECT_NE(ran[1].find("erf("), std::string::npos);
  const Advice* advice = find(report, "activation");
  ASSERT_NE(advice, nullptr);
  EXPECT_TRUE(advice->measured);
  EXPECT_EQ(choice(*advice, "ReLU").price_ns, 300);  // maximum, broadcast, constant
}

TEST(Advise, MemoryBoundProductsHaveRoom) {
  EXPECT_NE(find(advice_for(product(1, 1024, 1024, "negate(d)")), "capacity"), nullptr);
  EXPECT_EQ(find(advice_for(product(512, 1024, 1024, "negate(d)")), "capacity"), nullptr);
}

TEST(Advise, DeepeningIsPriced) {
  const AdviceReport report = advice_for(
      "x = f32[1,28,28,64] parameter(0)\nw = f32[3,3,64,64] constant({...})\n"
      "ROOT c = f32[1,28,28,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, "
      "dim_labels=b01f_01io->b01f");
  const Advice* advice = find(report, "deepening");
  ASSERT_NE(advice, nullptr);
  // A ninth of the 3x3 product, and a little more for its short sums.
  EXPECT_LT(advice->gain_ns, -report.product_ns / 12);
  EXPECT_GT(advice->gain_ns, -report.product_ns / 4);
}

}  // namespace
}  // namespace heddle::compiler
