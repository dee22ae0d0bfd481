// Convolutions with groups that share lanes, checked by the kernel interpreter against the
// reference: widths of a group, windows, borders, tails, weights in place and in panels, epilogues.
#include <gtest/gtest.h>

#include <random>

#include "compiler/fusion_check.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "schedule/windows.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;

struct Dim {
  int64_t in, size = 3, stride = 1, low = 1, high = 1, dilation = 1;
  int64_t out() const { return (in + low + high - ((size - 1) * dilation + 1)) / stride + 1; }
};

struct Case {
  int64_t batch = 1, groups = 8, inputs = 4, features = 4;  // of a group
  std::vector<Dim> dims;
  const char* type = "f32";
};

template <typename Field>
std::string each(const Case& c, const char* between, Field field) {
  std::string text;
  for (const Dim& d : c.dims) text += (text.empty() ? "" : between) + field(d);
  return text;
}

std::string input_shape(const Case& c) {
  return fmt::format("{}[{},{},{}]", c.type, c.batch,
                     each(c, ",", [](const Dim& d) { return std::to_string(d.in); }),
                     c.groups * c.inputs);
}
std::string output_shape(const Case& c) {
  return fmt::format("{}[{},{},{}]", c.type, c.batch,
                     each(c, ",", [](const Dim& d) { return std::to_string(d.out()); }),
                     c.groups * c.features);
}
std::string kernel_shape(const Case& c) {
  return fmt::format("{}[{},{},{}]", c.type,
                     each(c, ",", [](const Dim& d) { return std::to_string(d.size); }), c.inputs,
                     c.groups * c.features);
}

// convolution(x, w) and its epilogue.
std::string module_text(const Case& c, const std::string& kernel, const std::string& epilogue) {
  std::string spatial;
  for (size_t i = 0; i < c.dims.size(); ++i) spatial += std::to_string(i);
  return fmt::format(
      "HloModule m\nENTRY e {{\n  x = {0} parameter(0)\n{2}"
      "  {8}y = {1} convolution(x, w), window={{size={3} stride={4} pad={5} rhs_dilate={6}}}, "
      "dim_labels=b{7}f_{7}io->b{7}f, feature_group_count={9}\n{10}}}\n",
      input_shape(c), output_shape(c), kernel,
      each(c, "x", [](const Dim& d) { return std::to_string(d.size); }),
      each(c, "x", [](const Dim& d) { return std::to_string(d.stride); }),
      each(c, "x", [](const Dim& d) { return fmt::format("{}_{}", d.low, d.high); }),
      each(c, "x", [](const Dim& d) { return std::to_string(d.dilation); }), spatial,
      epilogue.empty() ? "ROOT " : "", c.groups, epilogue);
}

std::string rising(int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i) values += fmt::format("{}{}", i ? ", " : "", i);
  return values;
}

FusionCheck check_module(const hlo::Module& module, const char* target_name) {
  auto target = target::find_target(target_name);
  FusionCheck checked = compiler::check_fusion(module, *target, 7, 512);
  EXPECT_EQ(checked.failure, "") << hlo::to_string(module) << checked.text;
  return checked;
}

FusionCheck run_case(const Case& c, const char* target, const std::string& epilogue = "") {
  const std::string text =
      module_text(c, fmt::format("  w = {} parameter(1)\n", kernel_shape(c)), epilogue);
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message) << text;
  return check_module(**module, target);
}

bool shares_lanes(const FusionCheck& ran) { return schedule::count_windows(ran.placed) > 0; }

Case random_case(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto number = [&](int64_t below) { return static_cast<int64_t>(random() % below); };
  Case c;
  const int64_t kFeatures[] = {2, 4, 8, 16};
  c.batch = 1 + number(2);
  c.features = kFeatures[number(4)];
  c.inputs = number(3) == 0 ? 1 + number(2 * c.features) : c.features;
  c.groups = 2 + number(48 / c.features);
  for (int64_t i = 0, rank = 1 + number(2); i < rank; ++i) {
    Dim d{};
    do {
      d = {2 + number(14), 1 + number(4), 1 + number(3), number(3), number(3), 1 + number(2)};
    } while (d.in + d.low + d.high < (d.size - 1) * d.dilation + 1);
    c.dims.push_back(d);
  }
  return c;
}

const char* target_of(uint64_t seed) {
  return seed % 3 == 0 ? "avx2" : seed % 3 == 1 ? "icelake" : "portable";
}

TEST(GroupLanes, AllKinds) {
  int shared = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    shared += shares_lanes(run_case(random_case(seed), target_of(seed)));
    if (HasFailure()) return;
  }
  EXPECT_GE(shared, 30);
}

TEST(GroupLanes, Doubles) {
  for (uint64_t seed = 100; seed < 106; ++seed) {
    Case c = random_case(seed);
    c.type = "f64";
    run_case(c, target_of(seed));
    if (HasFailure()) return;
  }
}

// Group widths that share lanes, fill them, or fill several vectors (those are the GEMM family's);
// and small floats, whose operands the family widens once.
TEST(GroupLanes, WhichDo) {
  const std::vector<Dim> image{{9}, {9}};
  EXPECT_TRUE(shares_lanes(run_case({1, 8, 4, 4, image}, "icelake")));
  EXPECT_TRUE(shares_lanes(run_case({1, 4, 8, 8, image}, "icelake")));
  EXPECT_TRUE(shares_lanes(run_case({1, 4, 16, 16, image}, "icelake")));
  EXPECT_TRUE(shares_lanes(run_case({1, 16, 1, 2, image}, "icelake")));
  EXPECT_TRUE(shares_lanes(run_case({1, 4, 4, 4, image}, "avx2")));
  EXPECT_FALSE(shares_lanes(run_case({1, 2, 32, 32, image}, "icelake")));
  EXPECT_FALSE(shares_lanes(run_case({1, 3, 12, 12, image}, "icelake")));
  EXPECT_FALSE(shares_lanes(run_case({1, 8, 4, 4, image, "f16"}, "icelake")));
}

// No guard is left, and every product is a fused multiply-add of all lanes.
TEST(GroupLanes, EveryLaneWorks) {
  FusionCheck ran = run_case({1, 8, 4, 4, {{8}, {16}}}, "icelake");
  ASSERT_TRUE(shares_lanes(ran));
  int64_t guarded = 0;
  for (const kernel::Expr& expr : ran.kernel.exprs()) guarded += expr.guarded;
  EXPECT_EQ(guarded, 0);
  // 3 taps, but 2 at each border, in both directions, for 4 inputs and 32 features.
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::fma)], 22 * 46 * 4 * 32);
}

TEST(GroupLanes, WhatHangsOnIt) {
  FusionCheck ran = run_case({1, 8, 4, 4, {{6}, {10}}}, "icelake", R"(  b = f32[32] parameter(2)
  bb = f32[1,6,10,32] broadcast(b), dimensions={3}
  z = f32[1,6,10,32] add(y, bb)
  zero = f32[] constant(0)
  zeros = f32[1,6,10,32] broadcast(zero), dimensions={}
  c = f32[1,6,10,32] maximum(z, zeros)
  o = f32[1,6,10,32] parameter(3)
  s = f32[1,6,10,32] add(c, o)
  ROOT r = (f32[1,6,10,32], f32[1,6,10,32]) tuple(s, z)
)");
  EXPECT_TRUE(shares_lanes(ran));
  EXPECT_EQ(ran.kernel.scratch_bytes, 0);
}

// A result with the features before the pixels: each group has separate vectors.
TEST(GroupLanes, OthersStayWithTheFamily) {
  FusionCheck ran = run_case({1, 8, 4, 4, {{6}, {10}}}, "icelake",
                             "  ROOT t = f32[1,32,6,10] transpose(y), dimensions={0,3,1,2}\n");
  EXPECT_FALSE(shares_lanes(ran));
}

// The kernel depends on constants only: it is packed in panels of lanes; the schedule stays.
TEST(GroupLanes, InPanels) {
  for (const char* name : {"icelake", "avx2"}) {
    for (const Case& c : {Case{1, 8, 4, 4, {{5}, {7}}}, Case{1, 7, 4, 4, {{5}, {7}}},
                          Case{1, 6, 8, 8, {{7, 3, 2}, {6, 3, 2}}}, Case{2, 3, 16, 16, {{4}, {4}}},
                          Case{1, 12, 3, 4, {{5, 1, 1, 0, 0}, {7, 5, 1, 2, 2}}}}) {
      const int64_t elems = c.dims[0].size * c.dims[1].size * c.inputs * c.groups * c.features;
      const std::string kernel = fmt::format(
          "  f = f32[{0}] constant({{{1}}})\n  s = f32[{0}] cosine(f)\n  w = {2} reshape(s)\n",
          elems, rising(elems), kernel_shape(c));
      auto module = hlo::parse_module(
          module_text(c, kernel, fmt::format("  ROOT t = {} tanh(y)\n", output_shape(c))));
      ASSERT_TRUE(module.has_value()) << module.error().message;
      auto target = target::find_target(name);
      auto packed = fuse::pack_weights(module->get(), *target);
      ASSERT_TRUE(packed.has_value());
      EXPECT_TRUE(*packed);
      ASSERT_TRUE(fuse::fuse(module->get(), *target, fuse::Mode::greedy).has_value());
      ASSERT_TRUE(hlo::verify(**module).has_value());
      int shared = 0;
      for (const hlo::Instr* instr : (*module)->entry()->instrs()) {
        if (!instr->is(hlo::Opcode::fusion)) continue;
        hlo::Module alone("fusion");
        alone.set_entry(alone.clone_computation(*instr->called()[0]));
        FusionCheck checked = check_module(alone, name);
        shared += shares_lanes(checked);
      }
      // On AVX2 groups of 16 are two vectors.
      const bool family = std::string(name) == "avx2" && c.features == 16;
      EXPECT_EQ(shared, family ? 0 : 1) << hlo::to_string(**module);
    }
  }
}

}  // namespace
}  // namespace heddle::stitch
