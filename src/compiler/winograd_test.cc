// Convolutions by Winograd's algorithm: kernels checked by the kernel interpreter, and when the
// compiler uses them.
#include "schedule/winograd.h"

#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "compiler/make_kernel.h"
#include "hlo/builder.h"
#include "hlo/text.h"
#include "hlo/winograd_filter.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "kernel/interp.h"
#include "kernel/text.h"
#include "kernel/verify.h"
#include "schedule/place.h"
#include "stitch/stitch.h"
#include "tensor/compare.h"

namespace heddle::compiler {
namespace {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

struct Case {
  const char* name;
  int m;
  int64_t images, height, width, channels, features;  // of the output, but for channels
  int64_t low, high;                                  // padding along both sides
  int64_t panel;
  const char* target = "icelake";
  const char* epilogue = "  ROOT r = f32[{}] negate(c)\n";
};

constexpr const char* kResidual = R"(  b = f32[{1}] parameter(2)
  bb = f32[{0}] broadcast(b), dimensions={{3}}
  s = f32[{0}] add(c, bb)
  y = f32[{0}] parameter(3)
  t = f32[{0}] add(s, y)
  zero = f32[] constant(0)
  zeros = f32[{0}] broadcast(zero), dimensions={{}}
  ROOT r = f32[{0}] maximum(t, zeros)
)";

const Case kCases[] = {
    {"two", 2, 1, 14, 16, 48, 48, 1, 1, 48},
    {"two_ragged", 2, 2, 15, 17, 48, 96, 1, 1, 32},
    {"four", 4, 1, 16, 20, 48, 64, 1, 1, 64},
    {"four_ragged", 4, 2, 14, 15, 64, 48, 1, 1, 16},
    {"no_padding", 4, 1, 14, 15, 48, 48, 0, 0, 48},
    {"uneven_padding", 4, 1, 15, 18, 48, 48, 2, 0, 16},
    {"more_padding", 2, 1, 16, 16, 48, 48, 2, 2, 48},
    {"residual", 4, 2, 14, 17, 48, 64, 1, 1, 32, "icelake", kResidual},
    {"residual_two", 2, 1, 15, 14, 48, 48, 1, 1, 48, "spr", kResidual},
    {"avx2", 4, 1, 14, 18, 56, 48, 1, 1, 16, "avx2", kResidual},
    {"avx2_two", 2, 1, 14, 14, 48, 56, 1, 1, 8, "avx2"},
    {"portable", 4, 1, 14, 14, 48, 48, 1, 1, 16, "portable"},
};

std::string extents(std::initializer_list<int64_t> values) {
  std::string text;
  for (int64_t value : values) text += fmt::format("{}{}", text.empty() ? "" : ",", value);
  return text;
}

std::string text_of(const Case& c, bool transformed) {
  const std::string out = extents({c.images, c.height, c.width, c.features});
  const int64_t less = 2 - c.low - c.high;
  const std::string in = extents({c.images, c.height + less, c.width + less, c.channels});
  const std::string filter = extents({3, 3, c.channels, c.features});
  const std::string points = extents({c.m + 2, c.m + 2, c.features / c.panel, c.channels, c.panel});
  const std::string w = transformed
                            ? fmt::format(
                                  "  u = f32[{}] parameter(1)\n  w = f32[{}] custom-call(u), "
                                  "custom_call_target=\"heddle.winograd_filter\"\n",
                                  points, filter)
                            : fmt::format("  w = f32[{}] parameter(1)\n", filter);
  return fmt::format(
             "HloModule m\nENTRY e {{\n  x = f32[{}] parameter(0)\n{}  c = f32[{}] convolution(x, "
             "w), "
             "window={{size=3x3 pad={}_{}x{}_{}}}, dim_labels=b01f_01io->b01f\n",
             in, w, out, c.low, c.high, c.low, c.high) +
         fmt::format(fmt::runtime(c.epilogue), out, c.features) + "}\n";
}

// U = G w Gᵀ in the family's panels.
Literal transform(const Case& c, const Literal& w) {
  const schedule::WinogradMatrices& matrices = schedule::winograd_matrices(c.m);
  const int64_t side = c.m + 2, panels = c.features / c.panel;
  Literal u(Shape::array(Type::f32, {side, side, panels, c.channels, c.panel}));
  for (int64_t n = 0; n < u.elems(); ++n) {
    const int64_t lane = n % c.panel, k = n / c.panel % c.channels;
    const int64_t panel = n / c.panel / c.channels % panels;
    const int64_t point = n / c.panel / c.channels / panels;
    double sum = 0;
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j)
        sum += matrices.filter[static_cast<size_t>(point / side * 3 + i)] *
               matrices.filter[static_cast<size_t>(point % side * 3 + j)] *
               w.get_f64(((i * 3 + j) * c.channels + k) * c.features + panel * c.panel + lane);
    u.set_f64(n, sum);
  }
  return u;
}

class WinogradKernelTest : public ::testing::TestWithParam<Case> {};

TEST_P(WinogradKernelTest, EqualsTheConvolution) {
  const Case& c = GetParam();
  auto plain = hlo::parse_module(text_of(c, false));
  auto module = hlo::parse_module(text_of(c, true));
  ASSERT_TRUE(plain.has_value() && module.has_value()) << text_of(c, true);
  const auto target = *target::find_target(c.target);
  const stage::PlacedFusion placed = schedule::place(*(*module)->entry(), target);
  ASSERT_TRUE(static_cast<bool>(placed.decision)) << placed.decision.reason();
  stitch::Stitched stitched = *make_kernel(placed, "test", target);
  ASSERT_TRUE(kernel::verify(stitched.kernel).has_value());

  std::vector<Literal> arguments = interp::random_arguments(**plain, 5);
  const Literal want = *interp::evaluate(**plain, arguments);
  arguments[1] = transform(c, arguments[1]);
  const Literal same = *interp::evaluate(**module, arguments);
  Literal got(want.shape());
  std::vector<void*> memory;
  for (Literal& argument : arguments) memory.push_back(argument.mutable_data());
  memory.push_back(got.mutable_data());
  const kernel::InterpReport report = kernel::interpret(stitched.kernel, memory, {}, 3);
  EXPECT_TRUE(report.faults.empty()) << report.faults[0];

  // The expected error of independent roundings, times the algorithm's amplification; an error six
  // times as large is very rare.
  const double error = schedule::winograd_error(c.m, c.channels);
  tensor::Tolerance tolerance;
  tolerance.relative_to_max = tolerance.relative = 6 * error;
  const tensor::Comparison comparison = tensor::compare(got, want, tolerance);
  EXPECT_TRUE(comparison.equal) << comparison.describe();
  EXPECT_TRUE(tensor::compare(same, want, tolerance).equal);

  const std::string text = stage::to_string(placed.schedule, placed.graph);
  EXPECT_NE(text.find(fmt::format(" : winograd {} tile ", c.m)), std::string::npos) << text;
  auto parsed = stage::parse_schedule(text, placed.graph);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(stage::to_string(*parsed, placed.graph), text);
}

INSTANTIATE_TEST_SUITE_P(Cases, WinogradKernelTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A network of two convolutions with constant filters, and a reader of the second.
std::unique_ptr<hlo::Module> network(int64_t channels) {
  auto module = std::make_unique<hlo::Module>("network");
  hlo::Computation* entry = module->add_computation("main");
  module->set_entry(entry);
  hlo::Builder b(entry);
  hlo::Instr* x = b.parameter(0, Shape::array(Type::f32, {1, channels, 28, 28}), "x");
  hlo::ConvolutionAttrs attrs;
  attrs.window.dims.resize(2);
  for (hlo::WindowDim& dim : attrs.window.dims) dim.size = 3, dim.pad_low = dim.pad_high = 1;
  attrs.dims.input_feature = attrs.dims.output_feature = 1;
  attrs.dims.kernel_output_feature = 0;
  attrs.dims.kernel_input_feature = 1;
  attrs.dims.input_spatial = attrs.dims.output_spatial = attrs.dims.kernel_spatial = {2, 3};
  for (int i = 0; i < 2; ++i) {
    Literal w(Shape::array(Type::f32, {channels, channels, 3, 3}));
    for (int64_t n = 0; n < w.elems(); ++n)
      w.set_f64(n, static_cast<double>((n * 7919 + i) % 255 - 127) / 2048);
    x = b.convolution(x, b.constant(std::move(w)), attrs);
    x = b.binary(hlo::Opcode::maximum, x, b.full(x->shape(), 0));
  }
  b.check();
  entry->set_root(x);
  return module;
}

int transformed(const hlo::Module& module) {
  int count = 0;
  for (const hlo::Computation* computation : module.post_order())
    for (const hlo::Instr* instr : computation->instrs()) count += hlo::winograd_filter(*instr) > 0;
  return count;
}

// The fused module computes the same, and each filter transform is in the kernel that uses it.
TEST(WinogradTest, FusedModuleIsTheSame) {
  Options options;
  options.numerics = Numerics::relaxed;
  auto fused = fuse_only(network(64), *target::find_target("spr"), options);
  ASSERT_TRUE(fused.has_value());
  ASSERT_EQ(transformed(**fused), 2);
  for (const hlo::Instr* instr : (*fused)->entry()->instrs())
    EXPECT_FALSE(instr->is(hlo::Opcode::custom_call)) << instr->name();
  const auto plain = network(64);
  const auto arguments = interp::random_arguments(*plain, 2);
  const Literal want = *interp::evaluate(*plain, arguments);
  const Literal got = *interp::evaluate(**fused, arguments);
  tensor::Tolerance tolerance;
  tolerance.relative_to_max = 1e-5;
  const tensor::Comparison comparison = tensor::compare(got, want, tolerance);
  EXPECT_TRUE(comparison.equal) << comparison.describe();
}

// Written by hand, without a convolution of the family, the call is computed like any operator.
TEST(WinogradTest, TheCallStandsAlone) {
  auto module = hlo::parse_module(R"(HloModule m
ENTRY e {
  u = f32[4,4,1,3,8] parameter(0)
  w = f32[3,3,3,8] custom-call(u), custom_call_target="heddle.winograd_filter"
  ROOT n = f32[3,3,3,8] negate(w)
})");
  ASSERT_TRUE(module.has_value());
  Options options;
  options.numerics = Numerics::relaxed;
  auto fused = fuse_only(std::move(*module), *target::find_target("spr"), options);
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_EQ(transformed(**fused), 1);
}

}  // namespace
}  // namespace heddle::compiler
