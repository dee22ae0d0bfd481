// Pools after a convolution, in its kernel (schedule/pooled.h): checked by the kernel interpreter
// against the reference.
#include "schedule/pooled.h"

#include <algorithm>

#include "compiler/fusion_test_util.h"
#include "cost/chain_cost.h"
#include "fuse/fuse.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "schedule/chain_tuning.h"
#include "tensor/compare.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;
using compiler::parsed;

struct Window {
  int64_t size, stride, pad;
  int64_t out(int64_t in) const { return (in + 2 * pad - size) / stride + 1; }
  std::string text() const {
    return fmt::format("size=1x{0}x{0}x1 stride=1x{1}x{1}x1 pad=0_0x{2}_{2}x{2}_{2}x0_0", size,
                       stride, pad);
  }
};

struct Case {
  int64_t batch = 1, lines = 12, columns = 10, channels = 3, features = 16;
  Window conv{3, 1, 1}, pool{2, 2, 0};
  const char* combine = "most";  // or "sum"
  bool behind = false;           // a map of the pooled value
};

// relu(conv(x, w) + b), pooled.
std::string network(const Case& c, const char* more = "", const char* result = "") {
  const int64_t h = c.conv.out(c.lines), w = c.conv.out(c.columns);
  const int64_t ph = c.pool.out(h), pw = c.pool.out(w);
  std::string text =
      fmt::format(R"(HloModule m
sum {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }}
most {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }}
ENTRY e {{
  x = f32[{0},{1},{2},{3}] parameter(0)
  w = f32[{5},{5},{3},{4}] parameter(1)
  b = f32[{4}] parameter(2)
  zero = f32[] constant(0)
  start = f32[] constant({6})
  c = f32[{0},{7},{8},{4}] convolution(x, w), window={{size={5}x{5} stride={9}x{9} pad={10}_{10}x{10}_{10}}}, dim_labels=b01f_01io->b01f
  bs = f32[{0},{7},{8},{4}] broadcast(b), dimensions={{3}}
  s = f32[{0},{7},{8},{4}] add(c, bs)
  zs = f32[{0},{7},{8},{4}] broadcast(zero), dimensions={{}}
  r = f32[{0},{7},{8},{4}] maximum(s, zs)
)",
                  c.batch, c.lines, c.columns, c.channels, c.features, c.conv.size,
                  c.combine == std::string("sum") ? "0" : "-inf", h, w, c.conv.stride, c.conv.pad);
  const bool last = !c.behind && *result == 0;
  text +=
      fmt::format("  {}p = f32[{},{},{},{}] reduce-window(r, start), window={{{}}}, to_apply={}\n",
                  last ? "ROOT " : "", c.batch, ph, pw, c.features, c.pool.text(), c.combine);
  if (c.behind)
    text += fmt::format(R"(  fs = f32[{0},{1},{2},{3}] broadcast(b), dimensions={{3}}
  ROOT q = f32[{0},{1},{2},{3}] multiply(p, fs)
)",
                        c.batch, ph, pw, c.features);
  return text + more + result + "}";
}

FusionCheck checked(const Case& c, const char* target_name = "icelake", const char* result = "") {
  const std::string text = network(c, "", result);
  FusionCheck check = compiler::proved(text, target_name, 3, 4096);
  EXPECT_TRUE(is_pooled(check.placed)) << text;
  return check;
}

TEST(PooledTest, Shapes) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    checked({}, target);
    checked({.batch = 2, .lines = 11, .columns = 13, .features = 24, .pool = {3, 2, 1}}, target);
  }
  checked({.lines = 9, .columns = 9, .features = 40, .pool = {3, 2, 0}});
  checked({.lines = 9, .columns = 7, .features = 64, .pool = {3, 1, 1}});
  checked({.batch = 3, .lines = 8, .columns = 5, .channels = 5, .features = 32, .pool = {2, 2, 0}});
}

// A network's first layers: 7x7 with stride 2, pooled 3x3 with stride 2.
TEST(PooledTest, FirstLayers) {
  checked({.lines = 40, .columns = 36, .features = 64, .conv = {7, 2, 3}, .pool = {3, 2, 1}});
  checked({.lines = 40, .columns = 36, .features = 20, .conv = {7, 2, 3}, .pool = {3, 2, 1}},
          "avx2");
}

// Lines and columns that no window reads.
TEST(PooledTest, WhatNobodySees) {
  checked({.lines = 13, .columns = 15, .pool = {2, 2, 0}});
  checked({.lines = 14, .columns = 17, .pool = {2, 3, 0}});
}

TEST(PooledTest, AveragesAndWhatHangsOnThem) {
  checked({.batch = 2, .features = 24, .pool = {3, 2, 1}, .combine = "sum", .behind = true});
  checked({.pool = {2, 2, 0}, .behind = true});
}

// Strips with a halo: the recomputation is counted, and no line outside the image is computed.
TEST(PooledTest, TheHaloIsCounted) {
  FusionCheck check = checked({.lines = 24, .columns = 200, .features = 96, .pool = {3, 2, 1}});
  const stage::Loop* strips = nullptr;
  for (const stage::ScheduleNode& node : check.placed.schedule.nodes)
    if (const auto* loop = std::get_if<stage::Loop>(&node); loop && loop->var == "lines_of")
      strips = loop;
  ASSERT_TRUE(strips) << check.text;
  EXPECT_GT(strips->trips, 1);
  EXPECT_GT(check.placed.placement.stages[0].recompute, 1);
}

// The convolution's result is an output too: the pool reads it from there.
TEST(PooledTest, TheConvolutionIsKept) {
  const char* both = "  ROOT t = (f32[2,6,5,48], f32[2,12,10,48]) tuple(p, r)\n";
  for (const char* target : {"icelake", "avx2"})
    checked({.batch = 2, .features = 48}, target, both);
  FusionCheck check = checked({.lines = 48, .columns = 80, .features = 40}, "icelake",
                              "  ROOT t = (f32[1,24,40,40], f32[1,48,80,40]) tuple(p, r)\n");
  EXPECT_EQ(check.kernel.scratch_bytes, 0);
}

stage::PlacedFusion placed(const std::string& text) {
  return schedule::place(*parsed(text)->entry(), *target::find_target("icelake"));
}

struct Cover {
  int kernels = 0;
  std::vector<fuse::Refusal> refusals;
};

Cover cover(const std::string& text, const target::Target& target) {
  Cover result;
  auto before = parsed(text);
  auto module = before->clone();
  EXPECT_TRUE(fuse::fuse(module.get(), target, fuse::Mode::stitch, &result.refusals).has_value());
  EXPECT_TRUE(hlo::verify(*module).has_value());
  for (const hlo::Instr* instr : module->entry()->instrs())
    result.kernels += instr->is(hlo::Opcode::fusion);
  return result;
}

bool refused(const Cover& cover, const std::string& code) {
  return std::any_of(cover.refusals.begin(), cover.refusals.end(),
                     [&](const fuse::Refusal& refusal) { return refusal.code == code; });
}

TEST(PooledTest, JoinedWhereItPays) {
  const auto target = target::find_target("icelake");
  // Many stores and little arithmetic; then a halo larger than its block.
  const Case large{.lines = 112, .columns = 112, .channels = 3, .features = 64};
  EXPECT_EQ(cover(network(large), *target).kernels, 1);
  const Case deep{.lines = 12, .columns = 6, .channels = 512, .features = 512, .pool = {5, 1, 2}};
  target::Target tight = *target;
  tight.caches[1].bytes = 40 << 10;  // no room for the lines of two pooled lines
  const Cover apart = cover(network(deep), tight);
  EXPECT_EQ(apart.kernels, 2);
  EXPECT_TRUE(refused(apart, "pool-recompute"));
}

// Measurements take precedence over predictions.
TEST(PooledTest, RecordsDecide) {
  auto target = target::find_target("icelake");
  const Case large{.lines = 112, .columns = 112, .channels = 3, .features = 64};
  const std::string key = schedule::pooled_key(placed(network(large)));
  for (const char* record : {schedule::kChainRecord, schedule::kApartRecord}) {
    target->records = std::make_shared<std::map<std::string, std::string>>(
        std::map<std::string, std::string>{{key, record}});
    EXPECT_EQ(cover(network(large), *target).kernels,
              record == std::string(schedule::kChainRecord) ? 1 : 2);
  }
}

}  // namespace
}  // namespace heddle::stitch
