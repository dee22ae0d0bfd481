#include "schedule/tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text.h"

namespace heddle::schedule {
namespace {

using testing::HasSubstr;

target::Target named_target(const std::string& name) { return *target::find_target(name); }

struct Case {
  std::shared_ptr<hlo::Module> module;  // the graph's stages point into it
  StageGraph graph;
  GemmShape shape;
  int64_t a_bytes = 0;
};

Case gemm_case(const std::string& entry) {
  auto module = hlo::parse_module("HloModule m\nENTRY e {\n" + entry + "\n}\n");
  HEDDLE_CHECK(module.has_value(), "{}", module.error().message);
  Case result;
  result.module = std::move(*module);
  result.graph = stage::build_stage_graph(*result.module->entry()).graph;
  GemmShapeOrNot match = match_gemm(result.graph, StageId(0));
  HEDDLE_CHECK(static_cast<bool>(match.decision), "{}", match.decision.reason());
  result.shape = match.shape;
  const Load& a = result.graph.stages[0].loads[static_cast<size_t>(match.shape.a_load)];
  result.a_bytes = result.graph.inputs[static_cast<size_t>(a.source.input)].shape.bytes();
  return result;
}

Case product() {
  return gemm_case(
      "a = f32[100,64] parameter(0) b = f32[64,80] parameter(1) ROOT d = f32[100,80] dot(a, b), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
}

Case convolution() {
  return gemm_case(
      "a = f32[1,14,14,32] parameter(0) b = f32[3,3,32,64] parameter(1) ROOT d = f32[1,14,14,64] "
      "convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f");
}

TEST(Tuning, RecordsAreReadBack) {
  Gemm gemm;
  gemm.mr = 7;
  gemm.nv = 4;
  gemm.my = 2;
  gemm.y_block = 6;
  gemm.kc = 96;
  gemm.m_block = 14;
  gemm.prefetch = 3;
  gemm.panels = 5;
  gemm.panels_first = gemm.copy_b = true;
  gemm.mma = kernel::find_mma("dpbusd");
  auto parsed = stage::parse_gemm(to_string(gemm));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(*parsed, gemm);
  EXPECT_THAT(stage::parse_gemm("gemm 8y3").error().message, HasSubstr("wanted a tile"));
  EXPECT_THAT(stage::parse_gemm(to_string(gemm) + " more").error().message,
              HasSubstr("wanted the end"));
}

TEST(Tuning, KeysSayWhatIsBakedIn) {
  const Case dot = product(), conv = convolution();
  EXPECT_EQ(gemm_key(dot.shape, dot.graph.stages[0], dot.a_bytes), "v4 dot 100x80x64 batch 1");
  EXPECT_EQ(gemm_key(100, 80, 64), "v4 dot 100x80x64 batch 1");
  EXPECT_EQ(gemm_key(conv.shape, conv.graph.stages[0], conv.a_bytes),
            "v4 conv n 64 rows 14 lines 14 of 196 groups 1 k 3 3 32 window 1+1-1<14 window "
            "1+1-1<14 bytes 25088");
}

TEST(Tuning, CandidatesAreLegalAndDiffer) {
  for (const char* name : {"icelake", "avx2", "portable"}) {
    const target::Target target = named_target(name);
    for (const Case& one : {product(), convolution()}) {
      const Stage& stage = one.graph.stages[0];
      const std::vector<Gemm> found =
          gemm_candidates(one.shape, stage, one.a_bytes, target, true, 12);
      ASSERT_GE(found.size(), 4u) << name;
      EXPECT_LE(found.size(), 12u);
      EXPECT_EQ(found[0], choose_gemm(one.shape, stage, one.a_bytes, target));
      for (size_t i = 1; i < found.size(); ++i) {
        EXPECT_TRUE(fits_registers(found[i], target)) << name << ": " << to_string(found[i]);
        for (size_t j = 0; j < i; ++j) EXPECT_FALSE(found[i] == found[j]) << to_string(found[i]);
      }
    }
  }
}

TEST(Tuning, RecordsComeBeforeTheStaticRule) {
  target::Target target = named_target("icelake");
  const Case dot = product();
  const Stage& stage = dot.graph.stages[0];
  const std::string key = gemm_key(dot.shape, stage, dot.a_bytes);
  Gemm wanted = choose_gemm(dot.shape, stage, dot.a_bytes, target);
  wanted.mr = 5;
  wanted.nv = 2;
  target.records = std::make_shared<std::map<std::string, std::string>>(
      std::map<std::string, std::string>{{key, to_string(wanted)}});
  EXPECT_EQ(choose_gemm(dot.shape, stage, dot.a_bytes, target), wanted);
  // Unusable records are ignored: too many registers, other lanes, no record at all.
  for (std::string text : {"gemm 30x4 lanes 16 kc 64 ku 4 prefetch 0 rows 100",
                           "gemm 5x2 lanes 8 kc 64 ku 4 prefetch 0 rows 100", "nothing"}) {
    target.records = std::make_shared<std::map<std::string, std::string>>(
        std::map<std::string, std::string>{{key, text}});
    EXPECT_FALSE(tuned_gemm(key, 0, target)) << text;
  }
}

}  // namespace
}  // namespace heddle::schedule
