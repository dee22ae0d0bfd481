// Top-k as a stage: lists in lanes and lists of single rows, fused with their readers.
#include <gtest/gtest.h>

#include <array>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::compiler {
namespace {

// `made` computes `x` from parameter p (empty: negated); the results are its first k, as values and
// as places.
std::string module_text(const std::string& type, const std::string& dims, int64_t n, int64_t k,
                        const std::string& end, const std::string& made) {
  const std::string from = fmt::format("{}[{}{}]", type, dims, n);
  const std::string call =
      fmt::format("[{}{}] custom-call(x), custom_call_target=\"heddle.{}.", dims, k, end);
  return fmt::format(
      "HloModule m\nENTRY main {{\n  p = {0} parameter(0)\n{1}"
      "  v = {2}{3}values\"\n  i = s32{3}places\"\n"
      "  ROOT r = ({2}[{4}{5}], s32[{4}{5}]) tuple(v, i)\n}}\n",
      from, made.empty() ? fmt::format("  x = {} negate(p)\n", from) : made, type, call, dims, k);
}

FusionCheck check(const std::string& text, const char* target) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << module.error().message;
  return check_fusion(**module, *target::find_target(target), 3, 64);
}

TEST(top_k, EqualsTheInterpreter) {
  struct Case {
    const char *type, *dims;
    int64_t n, k;
  };
  for (const char* target : {"avx2", "icelake"}) {
    for (const char* end : {"largest", "smallest"}) {
      for (const Case& c :
           {Case{"f32", "19,", 43, 5}, Case{"f32", "32,", 64, 8}, Case{"f32", "7,", 9, 9},
            Case{"f32", "3,5,", 20, 1}, Case{"f32", "", 700, 10}, Case{"f32", "2,", 700, 1},
            Case{"f32", "2,", 300, 40}, Case{"f64", "6,", 33, 3}, Case{"bf16", "16,", 33, 3},
            Case{"f16", "2,", 600, 3}, Case{"s8", "9,", 70, 16}, Case{"s32", "1,", 90, 17},
            Case{"f32", "4,", 1, 1}, Case{"s64", "31,", 8, 2}, Case{"f32", "130,", 9, 1},
            Case{"f32", "67,", 9, 2}, Case{"f32", "31,", 7, 3}, Case{"f32", "20,", 6, 5}}) {
        const FusionCheck got = check(module_text(c.type, c.dims, c.n, c.k, end, ""), target);
        EXPECT_EQ(got.failure, "")
            << target << " " << end << " " << c.type << "[" << c.dims << c.n << "] " << c.k;
      }
    }
  }
}

// A GPU's tasks, which are split if there are few, never divide a list: few rows, rows whose number
// has no divisor, rows of several dimensions. Lists that threads would share are refused.
TEST(top_k, TasksOfAGpuHaveWholeLists) {
  int proved = 0;
  for (const char* target : {"sm_90", "sm_80"}) {
    for (const char* dims : {"", "1,", "3,", "4,", "2,2,", "3,5,", "8,5,", "37,", "67,"}) {
      for (const auto& [n, k] : std::vector<std::array<int64_t, 2>>{
               {4, 1}, {9, 9}, {43, 5}, {70, 16}, {70, 17}, {300, 64}}) {
        const FusionCheck got = check(module_text("f32", dims, n, k, "largest", ""), target);
        const bool refused = got.failure == "refused: v is a list that threads would share";
        EXPECT_TRUE(refused || got.failure.empty())
            << target << " f32[" << dims << n << "] " << k << ": " << got.failure;
        proved += got.failure.empty();
      }
    }
  }
  EXPECT_GE(proved, 24);
}

// A reshape before it splits the row into digits.
TEST(top_k, TakesRowsThatAReshapeMade) {
  for (const char* target : {"avx2", "icelake"}) {
    for (const auto& [rows, outer, inner, k] : std::vector<std::array<int64_t, 4>>{{1, 3, 16, 3},
                                                                                   {40, 5, 37, 3},
                                                                                   {2, 4, 300, 40},
                                                                                   {1, 2, 400, 9},
                                                                                   {33, 3, 3, 1},
                                                                                   {17, 2, 2, 4}}) {
      const std::string made = fmt::format(
          "  s = f32[{0},{1},{2}] reshape(p)\n  q = f32[{1}] iota(), iota_dimension=0\n"
          "  qs = f32[{0},{1},{2}] broadcast(q), dimensions={{1}}\n"
          "  a = f32[{0},{1},{2}] add(s, qs)\n  x = f32[{0},{3}] reshape(a)\n",
          rows, outer, inner, outer * inner);
      const FusionCheck got = check(
          module_text("f32", fmt::format("{},", rows), outer * inner, k, "largest", made), target);
      EXPECT_EQ(got.failure, "") << target << " " << rows << "x" << outer << "x" << inner;
    }
  }
}

// Fewer than k elements exceed the least value of the type: of equal ones the first come first.
TEST(top_k, TakesTheFirstOfEquals) {
  const std::string made =
      "  z = f32[] constant(0)\n  zs = f32[20,40] broadcast(z), dimensions={}\n"
      "  h = f32[] constant(0.9)\n  hs = f32[20,40] broadcast(h), dimensions={}\n"
      "  s = f32[20,40] subtract(p, hs)\n  m = f32[20,40] maximum(s, zs)\n"
      "  x = f32[20,40] log(m)\n";
  for (const char* target : {"avx2", "icelake"})
    EXPECT_EQ(check(module_text("f32", "20,", 40, 12, "largest", made), target).failure, "");
  const std::string least =
      "  z = s32[] constant(-2147483648)\n  zs = s32[3,40] broadcast(z), dimensions={}\n"
      "  x = s32[3,40] minimum(p, zs)\n";
  EXPECT_EQ(check(module_text("s32", "3,", 40, 20, "largest", least), "icelake").failure, "");
}

// Lists of one element after a transpose: the elements of a row are strided.
TEST(top_k, TakesStridedRows) {
  for (const char* target : {"avx2", "icelake"}) {
    for (const char* rows : {"100", "4100"}) {
      const std::string text = fmt::format(
          "HloModule m\nENTRY main {{\n  p = f32[3,{0}] parameter(0)\n"
          "  x = f32[{0},3] transpose(p), dimensions={{1,0}}\n"
          "  v = f32[{0},1] custom-call(x), custom_call_target=\"heddle.largest.values\"\n"
          "  i = s32[{0},1] custom-call(x), custom_call_target=\"heddle.largest.places\"\n"
          "  f = f32[{0}] reshape(v)\n  e = f32[{0}] exponential(f)\n"
          "  ROOT r = (f32[{0}], s32[{0},1]) tuple(e, i)\n}}\n",
          rows);
      EXPECT_EQ(check(text, target).failure, "") << target << " " << rows;
    }
  }
}

// One element of the list; the number of rows has no divisor to give a task several.
TEST(top_k, GivesOnePlaceOfTheList) {
  const FusionCheck got = check(
      "HloModule m\nENTRY main {\n  x = f32[19,43] parameter(0)\n"
      "  v = f32[19,5] custom-call(x), custom_call_target=\"heddle.largest.values\"\n"
      "  s = f32[19,1] slice(v), slice={[0:19], [4:5]}\n  f = f32[19] reshape(s)\n"
      "  fs = f32[19,43] broadcast(f), dimensions={0}\n"
      "  ROOT y = f32[19,43] subtract(x, fs)\n}\n",
      "avx2");
  EXPECT_EQ(got.failure, "");
}

TEST(top_k, SharesAKernelWithItsReaders) {
  const FusionCheck got = check(
      "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, "
      "b) }\n"
      "ENTRY main {\n  p = f32[48,24] parameter(0)\n  x = f32[48,24] exponential(p)\n"
      "  v = f32[48,4] custom-call(x), custom_call_target=\"heddle.largest.values\"\n"
      "  i = s32[48,4] custom-call(x), custom_call_target=\"heddle.largest.places\"\n"
      "  zero = f32[] constant(0)\n  t = f32[48] reduce(v, zero), dimensions={1}, to_apply=add\n"
      "  b = f32[48,4] broadcast(t), dimensions={0}\n  w = f32[48,4] divide(v, b)\n"
      "  l = f32[48,1] slice(v), slice={[0:48], [3:4]}\n  m = f32[48] reshape(l)\n"
      "  ms = f32[48,24] broadcast(m), dimensions={0}\n"
      "  ge = pred[48,24] compare(x, ms), direction=GE\n"
      "  ROOT r = (f32[48,4], s32[48,4], pred[48,24]) tuple(w, i, ge)\n}\n",
      "icelake");
  EXPECT_EQ(got.failure, "");
  int lists = 0;
  for (const stage::Stage& stage : got.placed.graph.stages) lists += stage.values.size() == 2;
  EXPECT_EQ(lists, 1);
  EXPECT_NE(got.text.find("t0 parallel"), std::string::npos);
}

}  // namespace
}  // namespace heddle::compiler
