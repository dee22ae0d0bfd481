// Transposes, and maps with a transposed load: squares transposed in registers, checked by the
// kernel interpreter, edges included.
#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::stitch {
namespace {

compiler::FusionCheck run_fusion(const std::string& entry, const char* target_name) {
  auto module = hlo::parse_module("HloModule m\nENTRY e {\n" + entry + "\n}\n");
  HEDDLE_CHECK(module.has_value(), "{}", module.error().message);
  auto target = target::find_target(target_name);
  compiler::FusionCheck checked = compiler::check_fusion(**module, *target, 3, 1);
  EXPECT_EQ(checked.failure, "") << checked.text;
  return checked;
}

bool is_turned(const compiler::FusionCheck& checked) {
  return checked.text.find("shuffle_xor") != std::string::npos;
}

TEST(Turn, TransposesOfEverySize) {
  for (const char* target : {"icelake", "avx2", "portable"}) {
    for (auto [rows, columns] : {std::pair{32, 48}, {33, 47}, {16, 1000}, {100, 9}, {64, 16}}) {
      const std::string entry = fmt::format(
          "a = f32[{0},{1}] parameter(0)\nROOT t = f32[{1},{0}] transpose(a), dimensions={{1,0}}",
          rows, columns);
      EXPECT_TRUE(is_turned(run_fusion(entry, target))) << target << entry;
    }
  }
}

TEST(Turn, BatchesAndWhatHangsOnThem) {
  for (const char* target : {"icelake", "avx2"}) {
    EXPECT_TRUE(is_turned(run_fusion(R"(
  a = f32[3,20,40] parameter(0)
  b = f32[20] parameter(1)
  c = f32[3,40,20] parameter(2)
  t = f32[3,40,20] transpose(a), dimensions={0,2,1}
  bb = f32[3,40,20] broadcast(b), dimensions={2}
  s = f32[3,40,20] add(t, bb)
  e = f32[3,40,20] tanh(s)
  ROOT r = f32[3,40,20] multiply(e, c))",
                                     target)));
    EXPECT_TRUE(is_turned(run_fusion(R"(
  a = s32[2,30,4,24] parameter(0)
  t = s32[2,4,24,30] transpose(a), dimensions={0,2,3,1}
  ROOT r = s32[2,4,24,30] negate(t))",
                                     target)));
  }
}

TEST(Turn, OthersAreRows) {
  EXPECT_FALSE(is_turned(run_fusion(  // too small
      "a = f32[8,9] parameter(0)\nROOT t = f32[9,8] transpose(a), dimensions={1,0}", "icelake")));
  EXPECT_FALSE(is_turned(run_fusion(  // the same digit is contiguous on both sides
      "a = f32[8,16,64] parameter(0)\nROOT t = f32[16,8,64] transpose(a), dimensions={1,0,2}",
      "icelake")));
}

// Every element twice: the lanes run over the elements, not over the two copies.
TEST(Turn, NarrowDigitsAreNoLanes) {
  const compiler::FusionCheck ran = run_fusion(R"(
  a = f32[40,28] parameter(0)
  b = f32[40,28,2] broadcast(a), dimensions={0,1}
  n = f32[40,28,2] negate(b)
  ROOT r = f32[40,56] reshape(n))",
                                               "icelake");
  const auto& row = std::get<stage::Row>(ran.placed.schedule.nodes.at(0));
  const stage::Stage& stage = ran.placed.graph.stage(row.joined[0]);
  EXPECT_GE(stage.out[static_cast<size_t>(row.own.back().digits[0])].extent, 28) << ran.text;
}

}  // namespace
}  // namespace heddle::stitch
