// The model nodes listed at each command.
#include "plan/model_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text.h"
#include "plan/fake_run.h"
#include "plan/plan.h"
#include "program/encode.h"
#include "program/text.h"

namespace heddle::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Planned {
  explicit Planned(const std::string& text) {
    auto parsed = hlo::parse_module("HloModule m\n" + text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    module = std::move(*parsed);
    for (const auto& computation : module->computations())
      for (const hlo::Instr* instr : computation->instrs())
        if (instr->is(hlo::Opcode::fusion)) kernels.emplace(instr, fake_kernel(*instr, {}));
    auto planned = plan(*module, kernels, {}, target::Target(), {});
    EXPECT_TRUE(planned) << planned.error().message;
    if (planned) program = std::move(*planned);
  }
  std::unique_ptr<hlo::Module> module;
  Kernels kernels;
  program::Program program;
};

TEST(ModelNodes, FusionsViewsAndWhatIsPrepared) {
  const Planned p(R"(
f { p = f32[16] parameter(0) ROOT n = f32[16] negate(p), metadata={op_name="prepare"} }
g { p = f32[16] parameter(0) q = f32[16] parameter(1)
  m = f32[16] multiply(p, q), metadata={op_name="layer/Mul;layer/Scale"}
  ROOT n = f32[16] add(m, q), metadata={op_name="layer/Add"} }
h { p = f32[4,4] parameter(0) ROOT n = f32[4,4] tanh(p) }
ENTRY e {
  x = f32[4,4] parameter(0)
  flat = f32[16] reshape(x), metadata={op_name="Flatten"}
  c = f32[16] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16})
  once = f32[16] fusion(c), kind=kLoop, calls=f
  a = f32[16] fusion(flat, once), kind=kLoop, calls=g
  square = f32[4,4] reshape(a), metadata={op_name="Reshape"}
  ROOT b = f32[4,4] fusion(square), kind=kLoop, calls=h
})");
  ASSERT_EQ(p.program.command_info.size(), 2u);
  EXPECT_THAT(p.program.command_info[0].nodes, ElementsAre("layer/Mul", "layer/Scale", "layer/Add",
                                                           "Flatten", "Reshape", "prepare"));
  EXPECT_TRUE(p.program.command_info[1].nodes.empty());
  ASSERT_EQ(p.program.once_info.size(), 1u);
  EXPECT_THAT(p.program.once_info[0].nodes, ElementsAre("prepare"));
  // Both are kept by a file, and shown.
  auto decoded = program::decode(program::encode(p.program));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->program.command_info[0].nodes, p.program.command_info[0].nodes);
  ASSERT_EQ(decoded->program.kernels.size(), p.program.kernels.size());
  for (size_t k = 0; k < p.program.kernels.size(); ++k) {
    EXPECT_FALSE(p.program.kernels[k].label.empty());
    EXPECT_EQ(decoded->program.kernels[k].label, p.program.kernels[k].label);
  }
  EXPECT_THAT(program::to_string(p.program), HasSubstr("layer/Mul, layer/Scale, layer/Add"));
}

// Equal constants are merged into one that has the names of all their nodes; a kernel that reads it
// does not get these names.
TEST(ModelNodes, SharedConstantsNameNoOthers) {
  const Planned p(R"(
f { p = f32[16] parameter(0) c = f32[] constant(2), metadata={op_name="a;b;half"}
  w = f32[16] broadcast(c), dimensions={}, metadata={op_name="a;b"}
  ROOT n = f32[16] multiply(p, w), metadata={op_name="a"} }
g { p = f32[16] parameter(0) c = f32[] constant(2), metadata={op_name="a;b;half"}
  w = f32[16] broadcast(c), dimensions={}, metadata={op_name="a;b"}
  ROOT n = f32[16] add(p, w), metadata={op_name="b"} }
ENTRY e { x = f32[16] parameter(0) y = f32[16] fusion(x), kind=kLoop, calls=f
  ROOT z = f32[16] fusion(y), kind=kLoop, calls=g })");
  ASSERT_EQ(p.program.command_info.size(), 2u);
  EXPECT_THAT(p.program.command_info[0].nodes, ElementsAre("a", "half"));
  EXPECT_THAT(p.program.command_info[1].nodes, ElementsAre("b"));
}

TEST(ModelNodes, ALoopsCommandsHaveTheirOwn) {
  const Planned p(R"(
f { p = f32[16] parameter(0) ROOT n = f32[16] negate(p), metadata={op_name="body/Neg"} }
c { s = (s32[], f32[16]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3) ROOT l = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[16]) parameter(0) i = s32[] get-tuple-element(s), index=0
  x = f32[16] get-tuple-element(s), index=1 one = s32[] constant(1) j = s32[] add(i, one)
  y = f32[16] fusion(x), kind=kLoop, calls=f ROOT r = (s32[], f32[16]) tuple(j, y) }
ENTRY e { x = f32[16] parameter(0) z = s32[] constant(0) t = (s32[], f32[16]) tuple(z, x)
  w = (s32[], f32[16]) while(t), condition=c, body=b, metadata={op_name="Loop"}
  ROOT o = f32[16] get-tuple-element(w), index=1 })");
  const auto& info = p.program.command_info;
  const auto loop = std::find_if(info.begin(), info.end(),
                                 [](const auto& one) { return one.operators == "while"; });
  ASSERT_NE(loop, info.end());
  EXPECT_THAT(loop->nodes, ElementsAre("Loop"));
  bool found = false;
  for (const program::Region& region : p.program.regions)
    for (const program::CommandInfo& one : region.info) {
      found = found || one.nodes == std::vector<std::string>{"body/Neg"};
      EXPECT_FALSE(one.nodes.empty()) << one.name;  // commands without names get the loop's
    }
  EXPECT_TRUE(found) << program::to_string(p.program);
}

// A list shared by many commands is stored once in full, and elsewhere only while it is short.
TEST(ModelNodes, SharedListsStayShort) {
  hlo::NodeNames many;
  for (int i = 0; i < 500; ++i) many.add(hlo::NodeNames("n" + std::to_string(i)));
  auto parsed = hlo::parse_module(
      "HloModule m\nENTRY e { x = f32[16] parameter(0) a = negate(x) b = tanh(a) ROOT c = abs(b) "
      "}\n");
  ASSERT_TRUE(parsed);
  for (hlo::Instr* instr : (*parsed)->entry()->instrs()) instr->add_nodes(many);
  (*parsed)->entry()->root()->add_nodes(hlo::NodeNames("last"));
  const auto flow = make_flow(**parsed, {});
  ASSERT_TRUE(flow);
  const auto lists = model_nodes(*flow, 64);
  ASSERT_EQ(lists.size(), 3u);
  EXPECT_EQ(lists[0].size(), 500u);
  EXPECT_EQ(lists[1].size(), 64u);
  EXPECT_EQ(lists[2].size(), 65u);
  EXPECT_EQ(lists[2].back(), "last");
}

}  // namespace
}  // namespace heddle::plan
