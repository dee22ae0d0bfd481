// Products whose right side is not a packed constant: in place, copied, transposed in registers.
#include <gtest/gtest.h>

#include <array>

#include "compiler/fusion_check.h"
#include "compiler/make_kernel.h"
#include "cost/strides.h"
#include "fuse/fuse.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "kernel/text.h"
#include "tensor/compare.h"

namespace heddle::stitch {
namespace {

// [m,k]·[k,n], or [m,k]·[n,k] where the right side is transposed.
compiler::FusionCheck checked_product(int64_t m, int64_t n, int64_t k, bool transposed,
                                      const char* target_name) {
  std::string text = fmt::format(
      "HloModule m\nENTRY e {{\n  a = f32[{},{}] parameter(0)\n  b = f32[{},{}] parameter(1)\n"
      "  ROOT d = f32[{},{}] dot(a, b), lhs_contracting_dims={{1}}, "
      "rhs_contracting_dims={{{}}}\n}}",
      m, k, transposed ? n : k, transposed ? k : n, m, n, transposed ? 1 : 0);
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  auto target = target::find_target(target_name);
  compiler::FusionCheck checked = compiler::check_fusion(**module, *target, 3, 4096);
  EXPECT_EQ(checked.failure, "") << checked.text;
  return checked;
}

stage::Gemm check_product(int64_t m, int64_t n, int64_t k, bool transposed,
                          const char* target_name) {
  compiler::FusionCheck checked = checked_product(m, n, k, transposed, target_name);
  return std::get<stage::Row>(checked.placed.schedule.nodes[0]).gemm()->record;
}

TEST(GemmTest, ColumnsAreTurnedInRegisters) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    for (int64_t k : {8, 16, 37, 48}) EXPECT_TRUE(check_product(9, 19, k, true, target).copy_b);
    EXPECT_TRUE(check_product(20, 40, 32, true, target).copy_b);
    EXPECT_TRUE(check_product(20, 33, 3, true, target).copy_b);
  }
}

TEST(GemmTest, RowsThatShareCacheSetsAreCopied) {
  EXPECT_TRUE(check_product(30, 1024, 70, false, "icelake").copy_b);
  EXPECT_FALSE(check_product(30, 1000, 70, false, "icelake").copy_b);
}

// The code of O0: steps are loops, even if four of them do not divide k.
TEST(GemmTest, RolledProductsAreShort) {
  for (int64_t k : {64, 67}) {
    const auto module = hlo::parse_module(fmt::format(
        "HloModule m\nENTRY e {{\n  a = f32[40,{0}] parameter(0)\n  b = f32[{0},64] parameter(1)\n"
        "  ROOT d = f32[40,64] dot(a, b), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={{0}}\n}}",
        k));
    ASSERT_TRUE(module.has_value());
    const target::Target target = *target::find_target("avx2");
    stage::PlacedFusion placed = schedule::place(*(*module)->entry(), target);
    const auto text_of = [&] {
      auto made = compiler::make_kernel(placed, "k", target);
      EXPECT_TRUE(made.has_value());
      made->kernel.schedule.clear();
      return kernel::to_string(made->kernel);
    };
    const std::string written_out = text_of();
    compiler::roll_products(&placed);
    const stage::Gemm& rolled = std::get<stage::Row>(placed.schedule.nodes[0]).gemm()->record;
    EXPECT_EQ(rolled.ku, 1);
    EXPECT_EQ(rolled.prefetch, 0);
    EXPECT_LT(text_of().size(), written_out.size());
  }
}

// Every type of sum, operands of other types, columns in place, copied and transposed.
TEST(GemmTest, TypesOfSums) {
  struct {
    const char *a, *b, *c;
  } const kTypes[] = {{"f64", "f64", "f64"}, {"f16", "f16", "f16"},  {"bf16", "bf16", "bf16"},
                      {"f16", "f16", "f32"}, {"bf16", "f32", "f32"}, {"s8", "s8", "s32"},
                      {"u8", "s8", "s32"},   {"s32", "s32", "s32"}};
  for (const auto& types : kTypes) {
    for (const char* target_name : {"icelake", "avx2", "portable"}) {
      for (bool transposed : {false, true}) {
        std::string text = fmt::format(
            "HloModule m\nENTRY e {{\n  a = {}[20,37] parameter(0)\n  b = {}[{}] parameter(1)\n"
            "  y = {}[20,29] parameter(2)\n  d = {}[20,29] dot(a, b), lhs_contracting_dims={{1}}, "
            "rhs_contracting_dims={{{}}}\n  ROOT s = {}[20,29] add(d, y)\n}}",
            types.a, types.b, transposed ? "29,37" : "37,29", types.c, types.c, transposed ? 1 : 0,
            types.c);
        auto module = hlo::parse_module(text);
        ASSERT_TRUE(module.has_value()) << module.error().message;
        auto target = target::find_target(target_name);
        compiler::FusionCheck checked = compiler::check_fusion(**module, *target, 3, 64);
        EXPECT_EQ(checked.failure, "") << text << checked.text;
        EXPECT_TRUE(stage::is_gemm(checked.placed)) << text;
      }
    }
  }
}

// Products of words (kernel/mma.def), B in place, transposed, and already packed in words: many
// numbers of rows and columns, k of whole words.
TEST(GemmTest, Words) {
  struct {
    const char *a, *b, *c, *target;
    int64_t word;
  } const kKinds[] = {{"u8", "s8", "s32", "icelake", 4},   {"u8", "s8", "s32", "avx2", 1},
                      {"s16", "s16", "s32", "icelake", 2}, {"bf16", "bf16", "f32", "zen5", 2},
                      {"bf16", "bf16", "bf16", "zen5", 2}, {"bf16", "bf16", "f32", "icelake", 1}};
  for (const auto& kind : kKinds) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{16, 16, 4},
                                  {17, 29, 36},
                                  {40, 65, 64},
                                  {33, 7, 100},
                                  {64, 80, 128}}) {
      for (const char* b : {"b", "turned", "packed"}) {
        const int64_t width = 16, panels = (n + width - 1) / width, w = kind.word;
        const std::string text = fmt::format(
            R"(HloModule m
ENTRY e {{
  a = {0}[{3},{5}] parameter(0)
  b = {1}[{5},{4}] parameter(1)
  t = {1}[{4},{5}] parameter(2)
  turned = {1}[{5},{4}] transpose(t), dimensions={{1,0}}
  p = {1}[{6},{7},{8},{9}] parameter(3)
  q = {1}[{7},{9},{6},{8}] transpose(p), dimensions={{1,3,0,2}}
  r = {1}[{5},{10}] reshape(q)
  packed = {1}[{5},{4}] slice(r), slice={{[0:{5}], [0:{4}]}}
  y = {2}[{3},{4}] parameter(4)
  d = {2}[{3},{4}] dot(a, {11}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT s = {2}[{3},{4}] add(d, y)
}})",
            kind.a, kind.b, kind.c, m, n, k, panels, k / w, width, w, panels * width, b);
        auto module = hlo::parse_module(text);
        ASSERT_TRUE(module.has_value()) << module.error().message;
        const target::Target target = *target::find_target(kind.target);
        compiler::FusionCheck checked = compiler::check_fusion(**module, target, 3, 64);
        EXPECT_EQ(checked.failure, "") << text << checked.text;
        ASSERT_TRUE(stage::is_gemm(checked.placed)) << text << checked.text;
        const auto& row = std::get<stage::Row>(checked.placed.schedule.nodes[0]);
        EXPECT_EQ(row.gemm()->record.word(), kind.word) << text << checked.text;
      }
    }
  }
}

// A buffer packed in words has words as elements, so another reader of the same array needs a
// separate kernel.
TEST(GemmTest, WordsAreReadByTheProductAlone) {
  auto module = hlo::parse_module(R"(HloModule m
ENTRY e {
  a = bf16[16,16] parameter(0)
  p = bf16[1,8,16,2] parameter(1)
  q = bf16[8,2,1,16] transpose(p), dimensions={1,3,0,2}
  b = bf16[16,16] reshape(q)
  d = bf16[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = bf16[16,16] reshape(p)
  ROOT s = bf16[16,16] add(d, y)
})");
  ASSERT_TRUE(module.has_value()) << module.error().message;
  const target::Target target = *target::find_target("zen5");
  compiler::FusionCheck checked = compiler::check_fusion(**module, target, 3, 64);
  EXPECT_NE(checked.failure.find("is read elsewhere too"), std::string::npos) << checked.failure;
}

TEST(GemmTest, SmallFloatsAreWidenedWhereTheyAreUsedOften) {
  auto rewritten = [](int64_t m, int64_t n, const char* type) {
    auto module = hlo::parse_module(fmt::format(
        "HloModule m\nENTRY e {{\n  a = {0}[{1},33] parameter(0)\n  b = {0}[33,{2}] parameter(1)\n"
        "  ROOT d = {0}[{1},{2}] dot(a, b), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={{0}}\n}}",
        type, m, n));
    EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
    std::unique_ptr<hlo::Module> after = (*module)->clone();
    auto changed = fuse::pack_weights(after.get(), *target::find_target("icelake"));
    EXPECT_TRUE(changed.has_value() && hlo::verify(*after).has_value());
    std::vector<tensor::Literal> arguments = interp::random_arguments(**module, 2);
    auto want = interp::evaluate(**module, arguments), got = interp::evaluate(*after, arguments);
    EXPECT_TRUE(want.has_value() && got.has_value());
    EXPECT_TRUE(tensor::compare(*got, *want, {}).equal);
    return *changed;
  };
  EXPECT_TRUE(rewritten(40, 48, "f16"));
  EXPECT_TRUE(rewritten(40, 48, "bf16"));
  EXPECT_FALSE(rewritten(4, 48, "f16"));  // too few rows: columns are only read
  EXPECT_FALSE(rewritten(40, 48, "f32"));
}

// A bias per column, a residual and a maximum before a transposed result; another result is not.
TEST(GemmTest, ResultsAlongRowsAreTurned) {
  for (const char* target_name : {"icelake", "avx2", "portable"}) {
    for (int64_t n : {16, 32, 37, 7, 3}) {
      for (int64_t m : {3, 17, 50}) {
        const std::string text = fmt::format(
            R"(HloModule m
ENTRY e {{
  a = f32[{0},21] parameter(0)
  b = f32[21,{1}] parameter(1)
  c = f32[{1}] parameter(2)
  r = f32[{1},{0}] parameter(3)
  d = f32[{0},{1}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  bias = f32[{0},{1}] broadcast(c), dimensions={{1}}
  e = f32[{0},{1}] add(d, bias)
  t = f32[{1},{0}] transpose(e), dimensions={{1,0}}
  s = f32[{1},{0}] add(t, r)
  ROOT both = (f32[{1},{0}], f32[{0},{1}]) tuple(s, e)
}})",
            m, n);
        auto module = hlo::parse_module(text);
        ASSERT_TRUE(module.has_value()) << module.error().message;
        auto target = target::find_target(target_name);
        compiler::FusionCheck checked = compiler::check_fusion(**module, *target, 5, 64);
        EXPECT_EQ(checked.failure, "") << checked.text;
        EXPECT_TRUE(stage::is_gemm(checked.placed));
        EXPECT_EQ(checked.text.find("shuffle_xor") != std::string::npos, n >= cost::kLeastTurned)
            << text;
      }
    }
  }
}

// A large array that is added to the result is read from memory: its lines are prefetched before
// the sums. A row that all rows share is not.
TEST(GemmTest, WhatIsAddedIsFetchedAhead) {
  auto fetches = [](int64_t rows) {
    auto module = hlo::parse_module(fmt::format(R"(HloModule m
ENTRY e {{
  a = f32[{0},32] parameter(0)
  b = f32[32,250] parameter(1)
  c = f32[{0},250] parameter(2)
  e = f32[250] parameter(3)
  d = f32[{0},250] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  eb = f32[{0},250] broadcast(e), dimensions={{1}}
  f = f32[{0},250] add(d, eb)
  ROOT g = f32[{0},250] add(f, c)
}})",
                                                rows));
    EXPECT_TRUE(module.has_value()) << module.error().message;
    compiler::FusionCheck checked =
        compiler::check_fusion(**module, *target::find_target("icelake"), 5, 64);
    EXPECT_EQ(checked.failure, "") << checked.text;
    int count = 0;
    for (const stage::Input& input : checked.placed.graph.inputs) {
      const auto number = &input - checked.placed.graph.inputs.data();
      const bool is_added = input.shape.dim(input.shape.rank() - 1) == 250;
      const std::string fetch = fmt::format("prefetch in{}[", number);
      if (is_added && checked.text.find(fetch) != std::string::npos) ++count;
    }
    return count;
  };
  EXPECT_EQ(fetches(1100), 1);
  EXPECT_EQ(fetches(300), 0);
}

TEST(GemmTest, FusedWhereTheTargetCan) {
  auto fused = [](const char* target) {
    compiler::FusionCheck checked = checked_product(4, 16, 5, false, target);
    return checked.report.op_counts[static_cast<size_t>(kernel::Op::fma)];
  };
  EXPECT_EQ(fused("icelake"), 4 * 16 * 5);
  EXPECT_EQ(fused("avx2"), 4 * 16 * 5);
  EXPECT_EQ(fused("portable"), 0);
}

}  // namespace
}  // namespace heddle::stitch
