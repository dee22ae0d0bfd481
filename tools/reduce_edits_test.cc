#include "reduce_edits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text.h"
#include "hlo/verify.h"

namespace heddle::tools {
namespace {

using hlo::Module;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<Module> parse(const char* text) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  return std::move(*module);
}

int64_t id_of(const Module& module, const char* name) {
  const hlo::Instr* instr = module.entry()->find(name);
  EXPECT_NE(instr, nullptr) << name;
  return instr->id();
}

std::string cleaned(Module& module) {
  clean(module);
  auto status = hlo::verify(module);
  EXPECT_TRUE(status) << status.error().message;
  return hlo::to_string(module);
}

constexpr const char* kChain = R"(HloModule m
ENTRY e {
  x = f32[4,6] parameter(0)
  y = f32[6] parameter(1)
  a = f32[4,6] exponential(x)
  b = f32[4,6] broadcast(y), dimensions={1}
  c = f32[4,6] multiply(a, b)
  s = f32[2,6] slice(c), slice={[2:4], [0:6]}
  d = f32[4,6] tanh(c)
  ROOT t = (f32[2,6], f32[4,6]) tuple(s, d)
}
)";

TEST(reduce_edits, WhatIsDroppedBecomesInputs) {
  auto module = parse(kChain);
  const ModuleSize before = size_of(*module);
  ASSERT_TRUE(drop_instrs(*module, module->entry()->id(), {id_of(*module, "c")}, false));
  const std::string text = cleaned(*module);
  EXPECT_THAT(text, Not(HasSubstr("multiply")));
  EXPECT_THAT(text, Not(HasSubstr("exponential")));
  EXPECT_EQ(module->entry()->parameters().size(), 1u);
  EXPECT_LT(size_of(*module), before);
}

TEST(reduce_edits, AParameterThatSomethingWaitsForStays) {
  auto module = parse(R"(HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1), control-predecessors={x}
  a = f32[4] negate(x), control-predecessors={y}
  ROOT b = f32[4] multiply(a, x)
}
)");
  EXPECT_THAT(cleaned(*module), HasSubstr("control-predecessors={%y}"));
  EXPECT_EQ(module->entry()->parameters().size(), 2u);
}

TEST(reduce_edits, WhatTheDroppedReadBecomesOutput) {
  auto module = parse(kChain);
  const std::vector<int64_t> all = {id_of(*module, "s"), id_of(*module, "d")};
  ASSERT_TRUE(drop_instrs(*module, module->entry()->id(), all, false));
  cleaned(*module);
  EXPECT_EQ(module->entry()->root()->name(), "c");
}

TEST(reduce_edits, AnOperandStandsForItsUser) {
  auto module = parse(kChain);
  EXPECT_FALSE(bypass(*module, module->entry()->id(), id_of(*module, "s"), 0));  // other shape
  ASSERT_TRUE(bypass(*module, module->entry()->id(), id_of(*module, "c"), 0));
  EXPECT_THAT(cleaned(*module), Not(HasSubstr("multiply")));
}

TEST(reduce_edits, ExtentsShrinkEverywhere) {
  auto module = parse(kChain);
  ASSERT_TRUE(shrink_extent(*module, 6, 1, false));
  EXPECT_THAT(cleaned(*module), HasSubstr("f32[2,1]"));
  // The slice begins at 2.
  auto cut = parse(kChain);
  EXPECT_FALSE(shrink_extent(*cut, 4, 1, false) && hlo::verify(*cut));
}

TEST(reduce_edits, ExtentsShrinkWithTheirMultiples) {
  auto module = parse(R"(HloModule m
ENTRY e {
  x = f32[2,12] parameter(0)
  c = f32[2,12] constant({{0,1,2,3,4,5,6,7,8,9,10,11}, {12,13,14,15,16,17,18,19,20,21,22,23}})
  a = f32[2,12] add(x, c)
  ROOT r = f32[2,3,4] reshape(a)
}
)");
  auto alone = module->clone();
  EXPECT_FALSE(shrink_extent(*alone, 3, 1, false) && hlo::verify(*alone));
  ASSERT_TRUE(shrink_extent(*module, 3, 1, true));
  const std::string text = cleaned(*module);
  EXPECT_THAT(text, HasSubstr("f32[2,1,4]"));
  EXPECT_THAT(text, HasSubstr("{12, 13, 14, 15}"));
}

TEST(reduce_edits, RegionsBecomeCalls) {
  auto module = parse(R"(HloModule m
yes { x = f32[3] parameter(0)
  ROOT y = f32[3] sine(x) }
no { x = f32[3] parameter(0)
  ROOT y = f32[3] cosine(x) }
ENTRY e {
  p = pred[] parameter(0)
  x = f32[3] parameter(1)
  ROOT c = f32[3] conditional(p, x, x), true_computation=yes, false_computation=no
}
)");
  ASSERT_TRUE(take_region(*module, module->entry()->id(), id_of(*module, "c"), 1));
  const std::string text = cleaned(*module);
  EXPECT_THAT(text, HasSubstr("cosine"));
  EXPECT_THAT(text, Not(HasSubstr("sine(f32[3] %x), metadata")));
  EXPECT_THAT(text, Not(HasSubstr("conditional")));
}

TEST(reduce_edits, LargeConstantsBecomeInputs) {
  auto module = parse(R"(HloModule m
ENTRY e {
  c = s32[3] constant({1, 2, 3})
  d = s32[] constant(4)
  b = s32[3] broadcast(d), dimensions={}
  ROOT r = s32[3] add(c, b)
}
)");
  const auto ids = large_constants(*module);
  ASSERT_EQ(ids.size(), 1u);
  ASSERT_TRUE(free_constants(*module, ids));
  EXPECT_THAT(cleaned(*module), HasSubstr("s32[3] parameter(0)"));
}

}  // namespace
}  // namespace heddle::tools
