// Windows along channels (depthwise convolutions, pools) as kernels that the kernel interpreter
// proves: many shapes, borders, strides, dilations, types, and epilogues.
#include <gtest/gtest.h>

#include <random>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;

FusionCheck run_fusion(const std::string& text, const char* target_name) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message) << text;
  auto target = target::find_target(target_name);
  EXPECT_TRUE(target.has_value());
  FusionCheck checked = compiler::check_fusion(**module, *target, 7, 128);
  EXPECT_EQ(checked.failure, "") << text << checked.text;
  return checked;
}

// The schedule row of the window: its first stage is unrolled over columns.
const stage::Row* window_row(const FusionCheck& ran) {
  for (const stage::ScheduleNode& node : ran.placed.schedule.nodes) {
    const auto* row = std::get_if<stage::Row>(&node);
    if (!row) continue;
    for (const stage::Own& own : row->own)
      if (own.kind == stage::LoopKind::unrolled) return row;
  }
  return nullptr;
}

struct Dim {
  int64_t in, size, stride, low, high, dilation;
  int64_t out() const { return (in + low + high - ((size - 1) * dilation + 1)) / stride + 1; }
};

struct Case {
  int64_t batch = 1, channels = 16;
  std::vector<Dim> dims;
  const char* type = "f32";
};

std::string extents(const Case& c, bool output) {
  std::string text = fmt::format("{}[{}", c.type, c.batch);
  for (const Dim& d : c.dims) text += fmt::format(",{}", output ? d.out() : d.in);
  return text + fmt::format(",{}]", c.channels);
}

// `field(d)` of each dimension, an x between.
template <typename Field>
std::string each(const Case& c, Field field) {
  std::string text;
  for (const Dim& d : c.dims) text += (text.empty() ? "" : "x") + field(d);
  return text;
}

std::string depthwise(const Case& c, const std::string& epilogue = "") {
  std::string sizes, spatial;
  for (size_t i = 0; i < c.dims.size(); ++i) {
    sizes += fmt::format("{},", c.dims[i].size);
    spatial += std::to_string(i);
  }
  return fmt::format(
      "HloModule m\nENTRY e {{\n  x = {0} parameter(0)\n  w = {2}[{3}1,{4}] parameter(1)\n"
      "  {9}y = {1} convolution(x, w), window={{size={5} stride={6} pad={7} rhs_dilate={8}}}, "
      "dim_labels=b{10}f_{10}io->b{10}f, feature_group_count={4}\n{11}}}\n",
      extents(c, false), extents(c, true), c.type, sizes, c.channels,
      each(c, [](const Dim& d) { return std::to_string(d.size); }),
      each(c, [](const Dim& d) { return std::to_string(d.stride); }),
      each(c, [](const Dim& d) { return fmt::format("{}_{}", d.low, d.high); }),
      each(c, [](const Dim& d) { return std::to_string(d.dilation); }),
      epilogue.empty() ? "ROOT " : "", spatial, epilogue);
}

std::string pool(const Case& c, const char* op, const char* init) {
  auto around = [&](const std::string& outer, const std::string& inner) {
    return outer + "x" + inner + "x" + outer;
  };
  return fmt::format(
      "HloModule m\nf {{ a = {2}[] parameter(0)\n  b = {2}[] parameter(1)\n"
      "  ROOT s = {2}[] {3}(a, b) }}\n"
      "ENTRY e {{\n  x = {0} parameter(0)\n  i = {2}[] constant({4})\n"
      "  ROOT y = {1} reduce-window(x, i), window={{size={5} stride={6} pad={7} rhs_dilate={8}}}, "
      "to_apply=f\n}}\n",
      extents(c, false), extents(c, true), c.type, op, init,
      around("1", each(c, [](const Dim& d) { return std::to_string(d.size); })),
      around("1", each(c, [](const Dim& d) { return std::to_string(d.stride); })),
      around("0_0", each(c, [](const Dim& d) { return fmt::format("{}_{}", d.low, d.high); })),
      around("1", each(c, [](const Dim& d) { return std::to_string(d.dilation); })));
}

Case random_case(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto number = [&](int64_t below) { return static_cast<int64_t>(random() % below); };
  Case c;
  c.batch = 1 + number(2);
  const int64_t kChannels[] = {4, 5, 16, 20, 33, 48};
  c.channels = kChannels[number(6)];
  for (int64_t i = 0, rank = 1 + number(3); i < rank; ++i) {
    Dim d{};
    do {
      d = {2 + number(rank == 3 ? 5 : 18),
           1 + number(5),
           1 + number(3),
           number(4),
           number(4),
           1 + number(2)};
    } while (d.in + d.low + d.high < (d.size - 1) * d.dilation + 1);
    c.dims.push_back(d);
  }
  return c;
}

const char* target_of(uint64_t seed) {
  return seed % 3 == 0 ? "avx2" : seed % 3 == 1 ? "icelake" : "portable";
}

TEST(Window, DepthwiseConvolutions) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    run_fusion(depthwise(random_case(seed)), target_of(seed));
    if (HasFailure()) return;
  }
}

TEST(Window, Pools) {
  const std::pair<const char*, const char*> kPools[] = {{"maximum", "-inf"}, {"add", "0"},
                                                        {"minimum", "inf"},  {"maximum", "0.5"},
                                                        {"add", "1"},        {"multiply", "1"}};
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto& [op, init] = kPools[seed % 6];
    run_fusion(pool(random_case(seed + 1000), op, init), target_of(seed));
    if (HasFailure()) return;
  }
}

TEST(Window, OtherTypes) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Case c = random_case(seed + 2000);
    c.type = seed % 3 == 0 ? "f64" : seed % 3 == 1 ? "f16" : "s32";
    run_fusion(depthwise(c), target_of(seed / 3));
    run_fusion(pool(c, "add", "0"), target_of(seed / 3));
    if (HasFailure()) return;
  }
}

const Case kImage{1, 32, {{12, 3, 1, 1, 1, 1}, {20, 3, 1, 1, 1, 1}}, "f32"};

// Columns are unrolled, rows are tasks; no guard is left anywhere, and nothing is computed outside
// the image.
TEST(Window, BordersAreSplitOff) {
  FusionCheck ran = run_fusion(depthwise(kImage), "icelake");
  const stage::Row* row = window_row(ran);
  ASSERT_TRUE(row);
  EXPECT_GE(ran.kernel.phases[0].groups[0].grid.size(), 1u);
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::select)], 0);
  int64_t guarded = 0;
  for (const kernel::Expr& expr : ran.kernel.exprs()) guarded += expr.guarded;
  EXPECT_EQ(guarded, 0);
  // 3 taps, but 2 at each border, in both directions, for 32 channels.
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::fma)], 34 * 58 * 32);
  // Tasks of three output rows read a row of the image, once each except where blocks meet.
  EXPECT_LE(ran.report.buffers[0].max_loads_per_elem, 6);
}

// A long window holds few inputs at once: those that the columns of a block share.
TEST(Window, LongOnes) {
  for (const char* target : {"icelake", "avx2"}) {
    const Case wide{1, 32, {{48, 31, 1, 15, 15, 1}}, "f32"};
    EXPECT_TRUE(window_row(run_fusion(depthwise(wide), target))) << target;
    const Case strided{1, 16, {{6, 3, 1, 1, 1, 1}, {50, 24, 2, 11, 11, 1}}, "f32"};
    EXPECT_TRUE(window_row(run_fusion(depthwise(strided), target))) << target;
  }
}

TEST(Window, WhatHangsOnIt) {
  FusionCheck ran = run_fusion(depthwise(kImage, R"(  b = f32[32] parameter(2)
  bb = f32[1,12,20,32] broadcast(b), dimensions={3}
  z = f32[1,12,20,32] add(y, bb)
  lo = f32[] constant(0)
  hi = f32[] constant(6)
  c = f32[1,12,20,32] clamp(lo, z, hi)
  o = f32[1,12,20,32] parameter(3)
  s = f32[1,12,20,32] add(c, o)
  ROOT r = (f32[1,12,20,32], f32[1,12,20,32]) tuple(s, z)
)"),
                               "icelake");
  const stage::Row* row = window_row(ran);
  ASSERT_TRUE(row);
  EXPECT_GE(row->joined.size(), 2u);
  EXPECT_EQ(ran.kernel.scratch_bytes, 0);
}

// A pad of zeros before the convolution is a border like its padding.
TEST(Window, PadsInFront) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  x = f32[1,9,9,16] parameter(0)
  w = f32[3,3,1,16] parameter(1)
  zero = f32[] constant(0)
  p = f32[1,11,11,16] pad(x, zero), padding=0_0x0_2x0_2x0_0
  ROOT y = f32[1,5,5,16] convolution(p, w), window={size=3x3 stride=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=16
})",
                               "icelake");
  EXPECT_TRUE(window_row(ran));
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::select)], 0);
}

// A pad with another value takes part in the window: masks at the border, none inside.
TEST(Window, PadsThatTakePart) {
  FusionCheck ran = run_fusion(R"(HloModule m
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b) }
ENTRY e {
  x = f32[1,19,19,16] parameter(0)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  p = f32[1,21,21,16] pad(x, zero), padding=0_0x1_1x1_1x0_0
  ROOT y = f32[1,10,10,16] reduce-window(p, least), window={size=1x3x3x1 stride=1x2x2x1}, to_apply=f
})",
                               "icelake");
  EXPECT_TRUE(window_row(ran));
}

// Dilated so far that hardly a column is inside: not unrolled block by block.
TEST(Window, BordersWithoutEnd) {
  const Case c{1, 16, {{400, 3, 1, 300, 300, 300}}, "f32"};
  EXPECT_FALSE(window_row(run_fusion(depthwise(c), "icelake")));
}

// Unsupported cases stay with the general rows: borders along the lanes, dilated inputs.
TEST(Window, OthersAreNoWindows) {
  for (const char* text : {
           R"(HloModule m
ENTRY e {
  x = f32[1,16,9,9] parameter(0)
  w = f32[16,1,3,3] parameter(1)
  ROOT y = f32[1,16,9,9] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=16
})",
           R"(HloModule m
ENTRY e {
  x = f32[1,5,5,16] parameter(0)
  w = f32[3,3,1,16] parameter(1)
  ROOT y = f32[1,9,9,16] convolution(x, w), window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=16
})",
       })
    EXPECT_FALSE(window_row(run_fusion(text, "icelake"))) << text;
}

// A short window along the lanes themselves (a sum over neighbouring channels): lanes run over the
// outputs, not over the few elements of the window.
TEST(Window, AlongTheLanes) {
  const FusionCheck ran = run_fusion(R"(HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[4,7,48] parameter(0)
  s = f32[4,7,48] multiply(x, x)
  zero = f32[] constant(0)
  r = f32[4,7,48] reduce-window(s, zero), window={size=1x1x5 pad=0_0x0_0x2_2}, to_apply=sum
  ROOT y = f32[4,7,48] divide(x, r)
})",
                                     "icelake");
  bool found = false;
  for (const stage::ScheduleNode& node : ran.placed.schedule.nodes) {
    const auto* row = std::get_if<stage::Row>(&node);
    if (!row || !ran.placed.graph.stage(row->joined[0]).is_reduction()) continue;
    const stage::Stage& stage = ran.placed.graph.stage(row->joined[0]);
    EXPECT_LT(row->own.back().digits[0], static_cast<int>(stage.out.size()));
    found = true;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace heddle::stitch
