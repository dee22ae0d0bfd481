// rotate_loops: the step computes whether the loop continues.
#include <gtest/gtest.h>

#include <string>

#include "hlo/loop_trips.h"
#include "opt/passes.h"
#include "opt/pipeline.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;

// Doubles x while `condition` of (i, x) holds.
std::string loop(const std::string& condition, const std::string& first = "0") {
  return "HloModule m\n"
         "condition {\n"
         "  s = (s32[], f32[3]) parameter(0)\n"
         "  i = s32[] get-tuple-element(s), index=0\n" +
         condition +
         "}\n"
         "body {\n"
         "  s = (s32[], f32[3]) parameter(0)\n"
         "  i = s32[] get-tuple-element(s), index=0\n"
         "  x = f32[3] get-tuple-element(s), index=1\n"
         "  one = s32[] constant(1)\n"
         "  next = s32[] add(i, one)\n"
         "  twice = f32[3] add(x, x)\n"
         "  ROOT r = (s32[], f32[3]) tuple(next, twice)\n"
         "}\n"
         "ENTRY main {\n"
         "  x = f32[3] parameter(0)\n"
         "  n = s32[] parameter(1)\n"
         "  first = s32[] constant(" +
         first +
         ")\n"
         "  start = (s32[], f32[3]) tuple(first, x)\n"
         "  state = (s32[], f32[3]) while(start), condition=condition, body=body\n"
         "  ROOT out = f32[3] get-tuple-element(state), index=1\n"
         "}\n";
}

const Instr* find_loop(const hlo::Module& module) {
  for (const Instr* instr : module.entry()->instrs())
    if (instr->is(Opcode::while_)) return instr;
  return nullptr;
}

TEST(RotateLoopsTest, TheConditionOnlyReads) {
  for (const char* first : {"0", "9"}) {  // five trips, and none
    auto module = parse(
        loop("  n = s32[] constant(5)\n  ROOT less = pred[] compare(i, n), direction=LT\n", first));
    auto before = module->clone();
    EXPECT_TRUE(run(*module, "rotate_loops,{fold_tuples,cse,dce}*").changed);
    expect_same_values(*before, *module, 3, false, "rotate_loops");
    const Instr* made = find_loop(*module);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->called()[0]->instrs().size(), 2u);
    EXPECT_EQ(made->shape().elements().size(), 3u);
    EXPECT_EQ(hlo::known_trips(made), std::optional<int64_t>(*first == '0' ? 5 : 0));
    EXPECT_FALSE(run(*module, "rotate_loops").changed);
  }
}

// A condition over whole values; no read of the whole state is left.
TEST(RotateLoopsTest, ConditionsOverValues) {
  auto module = parse(
      "HloModule m\n"
      "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n" +
      loop("  x = f32[3] get-tuple-element(s), index=1\n"
           "  a = f32[3] abs(x)\n"
           "  t = f32[1] slice(a), slice={[1:2]}\n"
           "  v = f32[] reshape(t)\n"
           "  bound = f32[] constant(100)\n"
           "  low = pred[] compare(v, bound), direction=LT\n"
           "  n = s32[] constant(40)\n"
           "  few = pred[] compare(i, n), direction=LT\n"
           "  ROOT both = pred[] and(low, few)\n")
          .substr(std::string("HloModule m\n").size()));
  auto before = module->clone();
  EXPECT_TRUE(run(*module, "rotate_loops,{fold_tuples,cse,dce}*").changed);
  expect_same_values(*before, *module, 5, false, "rotate_loops");
  EXPECT_FALSE(hlo::known_trips(find_loop(*module)).has_value());
}

TEST(RotateLoopsTest, LeftAlone) {
  // It only reads an element already.
  expect_unchanged(
      "HloModule m\n"
      "condition {\n  s = (pred[], f32[3]) parameter(0)\n"
      "  ROOT p = pred[] get-tuple-element(s), index=0\n}\n"
      "body {\n  s = (pred[], f32[3]) parameter(0)\n"
      "  x = f32[3] get-tuple-element(s), index=1\n  no = pred[] constant(false)\n"
      "  ROOT r = (pred[], f32[3]) tuple(no, x)\n}\n"
      "ENTRY main {\n  x = f32[3] parameter(0)\n  yes = pred[] constant(true)\n"
      "  start = (pred[], f32[3]) tuple(yes, x)\n"
      "  state = (pred[], f32[3]) while(start), condition=condition, body=body\n"
      "  ROOT out = f32[3] get-tuple-element(state), index=1\n}\n",
      "rotate_loops");
}

}  // namespace
}  // namespace heddle::opt
