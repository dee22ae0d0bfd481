// Functions that are called again and again are worked on once and copied after fusion: the
// programs compute what those do whose calls were copied at the start, and compiling takes less
// than a function's work for each call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compiled_run.h"
#include "hlo/text.h"
#include "interp/random_inputs.h"
#include "opt/passes.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;

// A layer of 40 operators around a product, called `calls` times: on the result of the call before
// with a matrix of its own (`deep`), or on an input of its own with one matrix for all.
std::string layers(int calls, bool deep) {
  std::string text =
      "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
      "layer {\n x = f32[16,24] parameter(0)\n w = f32[24,24] parameter(1)\n"
      " d = f32[16,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      " zero = f32[] constant(0)\n s = f32[16] reduce(d, zero), dimensions={1}, to_apply=sum\n"
      " b = f32[16,24] broadcast(s), dimensions={0}\n n0 = f32[16,24] subtract(d, b)\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format(" n{} = f32[16,24] {}(n{}, {})\n", i + 1, i % 2 ? "multiply" : "add", i,
                        i % 3 ? "x" : "b");
  text += " ROOT y = f32[16,24] tanh(n40)\n}\nENTRY e {\n";
  std::string names, shapes;
  for (int i = 0; i <= calls; ++i) {
    const char* shape = deep == (i > 0) ? "f32[24,24]" : "f32[16,24]";
    text += fmt::format(" p{} = {} parameter({})\n", i, shape, i);
  }
  for (int i = 1; i <= calls; ++i) {
    const std::string x = !deep ? fmt::format("p{}", i) : i == 1 ? "p0" : fmt::format("y{}", i - 1);
    text += fmt::format(" y{} = f32[16,24] call({}, p{}), to_apply=layer\n", i, x, deep ? i : 0);
    names += fmt::format("{}y{}", i == 1 ? "" : ", ", i);
    shapes += fmt::format("{}f32[16,24]", i == 1 ? "" : ", ");
  }
  return text + fmt::format(" ROOT t = ({}) tuple({})\n}}\n", shapes, names);
}

struct Ran {
  std::vector<Literal> values;
  size_t kernels = 0;
};

Ran compiled(std::unique_ptr<hlo::Module> module, const std::vector<Literal>& inputs) {
  auto program = compiler::compile(std::move(module), {}, target::host_target(), {});
  EXPECT_TRUE(program.has_value()) << program.error().message;
  Ran ran;
  ran.kernels = program->kernels.size();
  std::string failure;
  ran.values = run_program(std::move(*program), inputs, 2, &failure);
  EXPECT_EQ("", failure);
  return ran;
}

class LazyPrograms : public testing::TestWithParam<bool> {};

TEST_P(LazyPrograms, ComputeTheSameAsCopiesFromTheStart) {
  const std::string text = layers(12, GetParam());
  auto lazily = hlo::parse_module(text), at_once = hlo::parse_module(text);
  ASSERT_TRUE(lazily.has_value()) << lazily.error().message;
  ASSERT_TRUE(opt::inline_calls(**at_once, {}).has_value());
  const std::vector<Literal> inputs = interp::random_arguments(**lazily, 5);
  const Ran one = compiled(std::move(*lazily), inputs),
            other = compiled(std::move(*at_once), inputs);
  ASSERT_EQ(one.values.size(), other.values.size());
  for (size_t i = 0; i < one.values.size(); ++i) {
    const tensor::Comparison same = tensor::compare(
        one.values[i], other.values[i], tensor::derived_tolerance(tensor::Type::f32, 24));
    EXPECT_TRUE(same.equal) << i << ": " << same.describe();
  }
  EXPECT_LE(one.kernels, 4u);  // of one layer, not of twelve
}

INSTANTIATE_TEST_SUITE_P(Calls, LazyPrograms, testing::Bool(),
                         [](const auto& one) { return one.param ? "Deep" : "MicroBatches"; });

}  // namespace
}  // namespace heddle
