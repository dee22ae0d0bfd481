// Bounded dimensions: a program that was compiled once, at the bound, against the interpreter on
// the exact shape, for every extent from 1 to the bound. What stands behind the extent in the
// inputs is NaN, of which nothing may be seen, or zero, where a model may count on it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bounded_cases.h"
#include "compiled_run.h"
#include "compiler/compiler.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "opt/mask_padding.h"
#include "opt/passes.h"
#include "target/target.h"
#include "tensor/compare.h"

namespace heddle {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;
using Extents = std::vector<int64_t>;

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// Of a text with signs for extents (bounded_cases.h).
std::unique_ptr<hlo::Module> module_at(const std::string& text, int64_t n) {
  std::string at = replaced(text, "@", std::to_string(n));
  at = replaced(replaced(at, "#", std::to_string(n + 1)), "$", std::to_string(n + 3));
  at = replaced(at, "~", std::to_string(2 * n));
  auto module = hlo::parse_module(at);
  HEDDLE_CHECK(module, "{}", module.error().message);
  return std::move(*module);
}

// What the extents of two modules' parameters are, of which the first is of extent `bound`.
hlo::SymbolTable symbols_of(const hlo::Module& a, const hlo::Module& b, int64_t bound,
                            int64_t least) {
  hlo::SymbolTable table({{"n", bound, -1, {}, least}});
  const auto &p = a.entry()->parameters(), &q = b.entry()->parameters();
  for (size_t i = 0; i < p.size(); ++i)
    for (int64_t d = 0; d < p[i]->shape().rank(); ++d) {
      const int64_t extent = p[i]->shape().dim(d);
      if (extent == q[i]->shape().dim(d)) continue;
      const size_t s = table.add(tensor::Extent::of_symbol(0).plus({extent - bound, {}}));
      table.symbols[s].places.emplace_back(static_cast<int64_t>(i), d);
    }
  return table;
}

void for_each_index(const Extents& extents, const std::function<void(const Extents&)>& visit) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  Extents at(extents.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(at);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == extents[d];) at[d] = 0;
  }
}

int64_t flat(const Extents& at, const Extents& extents) {
  int64_t result = 0;
  for (size_t d = 0; d < at.size(); ++d) result = result * extents[d] + at[d];
  return result;
}

// The array as the first elements of a larger one, NaN behind them; zeros where `room` is for more.
Literal padded(const Literal& x, const Shape& shape, bool room) {
  Literal result(shape);
  const double behind = room ? 0 : std::numeric_limits<double>::quiet_NaN();
  for (int64_t i = 0; i < result.elems(); ++i)
    tensor::is_float(shape.type()) ? result.set_f64(i, behind) : result.set_s64(i, room ? 0 : 1);
  for_each_index(x.shape().extents(), [&](const Extents& at) {
    result.set_bits(flat(at, shape.extents()), x.get_bits(flat(at, x.shape().extents())));
  });
  return result;
}

Literal cut(const Literal& x, const Shape& shape) {
  Literal result(shape);
  for_each_index(shape.extents(), [&](const Extents& at) {
    result.set_bits(flat(at, shape.extents()), x.get_bits(flat(at, x.shape().extents())));
  });
  return result;
}

using opt::BehindInputs;
class Bounded : public testing::TestWithParam<std::tuple<Case, compiler::Fuse, BehindInputs>> {};

TEST_P(Bounded, EveryExtentIsThatOfTheExactShape) {
  const auto& [one, fuse, behind] = GetParam();
  const target::Target target = target::host_target();
  std::unique_ptr<hlo::Module> module = module_at(one.text, one.bound);
  const Status masked = opt::mask_bounded(
      *module, symbols_of(*module, *module_at(one.text, one.bound - 1), one.bound, one.least),
      behind);
  ASSERT_TRUE(masked) << masked.error().message;
  const std::vector<hlo::Symbol> symbols = module->symbols;
  compiler::Options options;
  if (one.together)
    EXPECT_TRUE(*opt::dynamic_outermost(*module->clone(), {}));
  else
    options.disable = {"dynamic_outermost"};
  options.fuse = fuse;
  compiler::Report report;
  auto program = compiler::compile(std::move(module), {}, target, options, &report);
  ASSERT_TRUE(program) << program.error().message;
  for (const auto& refusal : report.refusals) {
    if (!refusal.code.starts_with("trim-")) continue;
    EXPECT_FALSE(one.trimmed && fuse == compiler::Fuse::stitch)
        << refusal.producer << ": " << refusal.code << ": " << refusal.reason;
  }
  Workers workers(1);
  runtime::CpuDevice device(workers);
  auto executable =
      runtime::Executable::load(std::move(*program), device.device(), api::host_functions());
  ASSERT_TRUE(executable) << executable.error().message;
  auto context = (*executable)->make_context();
  ASSERT_TRUE(context);
  const program::Program& loaded = (*executable)->program();
  const auto at_bound = module_at(one.text, one.bound);
  for (int64_t n = one.bound; n >= one.least; --n) {
    const std::unique_ptr<hlo::Module> exact = module_at(one.text, n);
    const std::vector<Literal> arguments =
        interp::random_arguments(*exact, static_cast<uint64_t>(n));
    auto wanted = interp::evaluate(*exact, arguments);
    ASSERT_TRUE(wanted) << wanted.error().message;
    std::vector<Literal> expected, inputs, outputs;
    append_leaves(*wanted, &expected);
    for (size_t i = 0; i < arguments.size(); ++i)
      inputs.push_back(
          padded(arguments[i], loaded.inputs[i].shape,
                 behind == BehindInputs::zeros ||
                     loaded.inputs[i].shape != at_bound->entry()->parameters()[i]->shape()));
    for (const hlo::Symbol& symbol : symbols) {  // each is n and a constant
      inputs.emplace_back(Shape::scalar(Type::s32));
      inputs.back().set_s64(0, symbol.bound - one.bound + n);
    }
    for (const program::Port& port : loaded.outputs) outputs.emplace_back(port.shape);
    for (size_t i = 0; i < inputs.size(); ++i)
      ASSERT_TRUE((*context)->bind_input(static_cast<int64_t>(i), inputs[i].data()));
    for (size_t i = 0; i < outputs.size(); ++i)
      ASSERT_TRUE((*context)->bind_output(static_cast<int64_t>(i), outputs[i].mutable_data()));
    ASSERT_TRUE((*context)->run());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const tensor::Comparison compared =
          tensor::compare(cut(outputs[i], expected[i].shape()), expected[i],
                          tensor::derived_tolerance(expected[i].type(), 256));
      ASSERT_TRUE(compared.equal) << one.name << " at " << n << ", output " << i << ": "
                                  << compared.describe();
    }
  }
}

std::string name_of(const testing::TestParamInfo<Bounded::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) +
         (std::get<1>(info.param) == compiler::Fuse::off ? "Unfused" : "") +
         (std::get<2>(info.param) == BehindInputs::zeros ? "BeforeZeros" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Bounded,
    testing::Combine(testing::ValuesIn(kCases),
                     testing::Values(compiler::Fuse::stitch, compiler::Fuse::off),
                     testing::Values(BehindInputs::anything, BehindInputs::zeros)),
    name_of);

// What a symbol may not reach is refused by name.
std::string refusal(const std::string& text) {
  std::unique_ptr<hlo::Module> module = module_at(text, 8);
  const auto masked = opt::mask_bounded(*module, symbols_of(*module, *module_at(text, 7), 8, 1),
                                        opt::BehindInputs::anything);
  return masked ? "" : masked.error().message;
}

TEST(BoundedRefusals, AreNamed) {
  EXPECT_EQ(refusal("HloModule m\nENTRY e { x = f32[@] parameter(0) y = f32[@] reverse(x), "
                    "dimensions={0} ROOT r = f32[@] negate(y) }"),
            "dimension 'n' reaches y (reverse), which needs fixed extents");
  EXPECT_EQ(refusal("HloModule m\nENTRY e { x = f32[@,3] parameter(0) y = f32[@,4] parameter(1) "
                    "ROOT r = f32[@,7] concatenate(x, y), dimensions={1} }"),
            "");
  EXPECT_EQ(refusal("HloModule m\nENTRY e { x = f32[@] parameter(0) y = f32[4] parameter(1) "
                    "s = f32[4] slice(x), slice={[0:8:2]} ROOT r = f32[4] add(s, y) }"),
            "dimension 'n' reaches s (slice), which needs fixed extents");
}

}  // namespace
}  // namespace heddle
