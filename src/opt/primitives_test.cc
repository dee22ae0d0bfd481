// The passes that make primitives: drop_layouts, inline_calls, expand_map, expand_batch_norm,
// remove_identities, fold_tuples, simplify_control.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text.h"
#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::HasSubstr;
using testing::Not;

#define X4 "x = f32[4] parameter(0)\n"

TEST(DropLayouts, BitcastsBecomeWhatTheyAre) {
  EXPECT_EQ(simplified("x = f32[2,3] parameter(0) ROOT r = f32[6] bitcast(x)", "drop_layouts"),
            "reshape[6](p0)");
  EXPECT_EQ(simplified("x = f32[2,3]{1,0} parameter(0) ROOT r = f32[3,2]{0,1} bitcast(x)",
                       "drop_layouts"),
            "transpose[3,2]{1,0}(p0)");
  EXPECT_EQ(
      simplified("x = f32[2,3]{0,1} parameter(0) ROOT r = f32[6]{0} bitcast(x)", "drop_layouts"),
      "reshape[6](transpose[3,2]{1,0}(p0))");
  EXPECT_EQ(simplified("x = f32[2,3] parameter(0) ROOT r = s32[6] bitcast(x)", "drop_layouts"),
            "reshape[6](bitcast-convert.s32(p0))");
}

TEST(DropLayouts, KeepsTheEntrysInTheHeader) {
  auto module = parse("x = f32[2,3]{0,1} parameter(0) ROOT r = f32[2,3]{0,1} negate(x)");
  run(*module, "drop_layouts");
  const std::string text = hlo::to_string(*module);
  EXPECT_THAT(text, HasSubstr("entry_computation_layout={(f32[2,3]{0,1})->f32[2,3]{0,1}}"));
  EXPECT_THAT(text, HasSubstr("f32[2,3] negate"));
  auto plain = parse("x = f32[2,3]{1,0} parameter(0) ROOT r = f32[2,3]{1,0} negate(x)");
  run(*plain, "drop_layouts");
  EXPECT_THAT(hlo::to_string(*plain), Not(HasSubstr("entry_computation_layout")));
}

TEST(DropLayouts, NothingToDo) {
  expect_unchanged("x = f32[2,3] parameter(0) ROOT r = f32[6] reshape(x)", "drop_layouts");
}

TEST(DropLayouts, TilesInABitcastAreRefused) {
  auto module = parse("x = f32[8,128]{1,0:T(8,128)} parameter(0) ROOT r = f32[1024] bitcast(x)");
  Result<bool> result = drop_layouts(*module, {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("bitcast %r from f32[8,128]"));
}

TEST(InlineCalls, CallsInsideCallsAndFusions) {
  EXPECT_EQ(simplified("inner { a = f32[4] parameter(0) ROOT n = negate(a) }\n"
                       "outer { a = f32[4] parameter(0) b = f32[4] parameter(1)\n"
                       "  c = call(b), to_apply=inner ROOT s = add(a, c) }\n"
                       "fused { a = f32[4] parameter(0) ROOT e = exponential(a) }\n"
                       "ENTRY e {" X4 "  y = call(x, x), to_apply=outer\n"
                       "  ROOT z = f32[4] fusion(y), kind=kLoop, calls=fused }",
                       "inline_calls"),
            "exponential(add(p0, negate(p0)))");
}

TEST(InlineCalls, ACalleeThatReturnsItsParameter) {
  EXPECT_EQ(simplified("id { ROOT a = f32[4] parameter(0) }\n"
                       "ENTRY e {" X4 "ROOT y = f32[4] call(x), to_apply=id }",
                       "inline_calls"),
            "p0");
}

TEST(InlineCalls, AsynchronousPairs) {
  EXPECT_EQ(simplified("f { a = f32[4] parameter(0) ROOT n = negate(a) }\n"
                       "ENTRY e {" X4 "  s = ((f32[4]), f32[4], u32[]) async-start(x), calls=f\n"
                       "  u = ((f32[4]), f32[4], u32[]) async-update(s)\n"
                       "  ROOT d = f32[4] async-done(u) }",
                       "inline_calls,dce"),
            "negate(p0)");
}

TEST(InlineCalls, ControlEdgesReachWhatIsInlined) {
  auto module = parse(
      "f { ROOT a = f32[4] negate(f32[4] parameter(0)) }\n"
      "ENTRY e {" X4
      "  t = token[] after-all()\n"
      "  o = token[] outfeed(x, t)\n"
      "  c = f32[4] call(x), to_apply=f, control-predecessors={o}\n"
      "  ROOT r = exponential(c) }");
  run(*module, "inline_calls");
  EXPECT_THAT(hlo::to_string(*module), HasSubstr("control-predecessors={%o}"));
}

TEST(InlineCalls, LoopsAndReducersStay) {
  expect_unchanged(
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = add(a, b) }\n"
      "ENTRY e {" X4
      "z = f32[] constant(0)\n"
      "ROOT r = reduce(x, z), dimensions={0}, to_apply=add }",
      "inline_calls");
}

TEST(InlineCalls, GrowthIsBounded) {
  std::string text =
      "f0 { a = f32[] parameter(0) b = negate(a) c = negate(b) ROOT r = negate(c) }\n";
  for (int i = 1; i <= 40; ++i)
    text += fmt::format(
        "f{} {{ a = f32[] parameter(0) b = f32[] call(a), to_apply=f{}\n"
        "ROOT r = f32[] call(b), to_apply=f{} }}\n",
        i, i - 1, i - 1);
  auto module =
      parse(text + "ENTRY e { a = f32[] parameter(0) ROOT r = f32[] call(a), to_apply=f40 }");
  Result<bool> result = inline_calls(*module, {});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("call each other too often"));
}

TEST(ExpandMap, ScalarsBecomeArrays) {
  EXPECT_EQ(simplified("f { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] constant(2)\n"
                       "  m = multiply(a, c) p = compare(m, b), direction=GT\n"
                       "  ROOT r = select(p, m, b) }\n"
                       "ENTRY e {" X4 "y = f32[4] parameter(1)\n"
                       "ROOT r = f32[4] map(x, y), dimensions={0}, to_apply=f }",
                       "expand_map"),
            "select(compare.GT(multiply(p0, broadcast[4]{}(2)), p1), "
            "multiply(p0, broadcast[4]{}(2)), p1)");
}

TEST(ExpandMap, OtherBodiesStay) {
  expect_unchanged(
      "t { ROOT a = f32[] parameter(0) }\n"
      "u { a = f32[] parameter(0) ROOT b = negate(a) }\n"
      "f { a = f32[] parameter(0) z = f32[] constant(0)\n"
      "  p = compare(a, z), direction=GT\n"
      "  ROOT r = f32[] conditional(p, a, a), true_computation=t, "
      "false_computation=u }\n"
      "ENTRY e {" X4 "ROOT r = f32[4] map(x), dimensions={0}, to_apply=f }",
      "expand_map");
}

#define NORM_INPUTS "x = f32[2,3,4] parameter(0) s = f32[3] parameter(1) o = f32[3] parameter(2)\n"

TEST(ExpandBatchNorm, Inference) {
  const std::string text = NORM_INPUTS
      "m = f32[3] parameter(3) v0 = f32[3] parameter(4) v = abs(v0)\n"
      "ROOT r = f32[2,3,4] batch-norm-inference(x, s, o, m, v), epsilon=0.01, feature_index=1";
  EXPECT_EQ(simplified(text, "expand_batch_norm", /*inexact=*/true),
            "add(multiply(subtract(p0, broadcast[2,3,4]{1}(p3)), broadcast[2,3,4]{1}(multiply(p1, "
            "rsqrt(add(abs(p4), broadcast[3]{}(0.01)))))), broadcast[2,3,4]{1}(p2))");
}

TEST(ExpandBatchNorm, TrainingAndGradient) {
  const std::string training = NORM_INPUTS
      "ROOT r = (f32[2,3,4], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.01, "
      "feature_index=1";
  EXPECT_THAT(simplified(training, "expand_batch_norm", true), Not(HasSubstr("batch-norm")));
  const std::string gradient = NORM_INPUTS
      "g = f32[2,3,4] parameter(3) v = abs(o)\n"
      "ROOT r = (f32[2,3,4], f32[3], f32[3]) batch-norm-grad(x, s, o, v, g), epsilon=0.01, "
      "feature_index=1";
  EXPECT_THAT(simplified(gradient, "expand_batch_norm", true), Not(HasSubstr("batch-norm")));
}

TEST(ExpandBatchNorm, NarrowFloatsAreComputedInF32) {
  const std::string text =
      "x = bf16[8,3] parameter(0) s = f32[3] parameter(1) o = f32[3] parameter(2)\n"
      "ROOT r = (bf16[8,3], f32[3], f32[3]) batch-norm-training(x, s, o), epsilon=0.01, "
      "feature_index=1";
  EXPECT_THAT(simplified(text, "expand_batch_norm", true), HasSubstr("convert.bf16"));
}

TEST(ExpandBatchNorm, OtherNormsStay) {
  expect_unchanged(X4 "ROOT r = rsqrt(x)", "expand_batch_norm");
}

TEST(RemoveIdentities, CopiesBarriersAndAnnotations) {
  EXPECT_EQ(simplified(X4 "a = f32[4] copy(x) b = f32[4] opt-barrier(a)\n"
                          "c = f32[4] custom-call(b), custom_call_target=\"Sharding\"\n"
                          "s = (f32[4], f32[4], u32[]) copy-start(c) d = f32[4] copy-done(s)\n"
                          "ROOT r = negate(d)",
                       "remove_identities"),
            "negate(p0)");
}

TEST(RemoveIdentities, CollectivesOfOneParticipant) {
  const std::string add =
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = add(a, b) }\n";
  EXPECT_EQ(
      simplified(add + "ENTRY e {" X4 "a = f32[4] all-reduce(x), replica_groups={}, to_apply=add\n"
                       "b = f32[4] all-gather(a), replica_groups={{0}}, dimensions={0}\n"
                       "g = (f32[4], f32[4]) all-gather-start(b), replica_groups={{0}}, "
                       "dimensions={0}\n"
                       "h = f32[4] all-gather-done(g)\n"
                       "c = f32[4] all-reduce-start(h), replica_groups={{0}}, to_apply=add\n"
                       "d = f32[4] all-reduce-done(c)\n"
                       "p = f32[4] collective-permute(d), source_target_pairs={{0,0}}\n"
                       "ROOT r = negate(p) }",
                 "{remove_identities,fold_tuples}*,dce"),
      "negate(p0)");
  expect_unchanged(
      add + "ENTRY e {" X4 "ROOT a = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add }",
      "remove_identities");
}

TEST(RemoveIdentities, DimensionSizesAndIds) {
  EXPECT_EQ(simplified(X4 "a = s32[] get-dimension-size(x), dimensions={0} p = u32[] replica-id()\n"
                          "ROOT r = tuple(a, p)",
                       "remove_identities"),
            "tuple(4, 0)");
  expect_unchanged("x = f32[<=4] parameter(0) ROOT a = s32[] get-dimension-size(x), dimensions={0}",
                   "remove_identities");
}

TEST(RemoveIdentities, TopKBecomesItsOperator) {
  EXPECT_EQ(simplified("x = f32[2,8] parameter(0)\n"
                       "t = (f32[2,3], s32[2,3]) custom-call(x), custom_call_target=\"TopK\"\n"
                       "ROOT r = f32[2,3] get-tuple-element(t), index=0",
                       "remove_identities"),
            "get-tuple-element.0(topk(p0))");
}

TEST(RemoveIdentities, WhatMattersStays) {
  expect_unchanged(X4 "ROOT a = f32[4] custom-call(x), custom_call_target=\"mystery\"",
                   "remove_identities");
  // The dependency is on an effect.
  expect_unchanged(X4
                   "t = token[] after-all() o = token[] outfeed(x, t)\n"
                   "ROOT a = f32[4] add-dependency(x, o)",
                   "remove_identities");
}

TEST(FoldTuples, ElementsAndWholes) {
  EXPECT_EQ(simplified(X4 "y = f32[2] parameter(1) t = tuple(x, y)\n"
                          "ROOT r = f32[2] get-tuple-element(t), index=1",
                       "fold_tuples"),
            "p1");
  EXPECT_EQ(simplified("t = (f32[4], f32[2]) parameter(0)\n"
                       "a = f32[4] get-tuple-element(t), index=0\n"
                       "b = f32[2] get-tuple-element(t), index=1 ROOT r = tuple(a, b)",
                       "fold_tuples"),
            "p0");
  expect_unchanged(
      "t = (f32[4], f32[4]) parameter(0)\n"
      "a = f32[4] get-tuple-element(t), index=0\n"
      "b = f32[4] get-tuple-element(t), index=1 ROOT r = tuple(b, a)",
      "fold_tuples");
}

#define BRANCHES                                       \
  "t { a = f32[4] parameter(0) ROOT r = negate(a) }\n" \
  "f { a = f32[4] parameter(0) ROOT r = abs(a) }\n"

TEST(SimplifyControl, KnownBranches) {
  EXPECT_EQ(simplified(BRANCHES "ENTRY e {" X4
                                "p = pred[] constant(false) ROOT r = f32[4] conditional(p, x, x), "
                                "true_computation=t, false_computation=f }",
                       "simplify_control"),
            "abs(p0)");
  // Out of range: the last.
  EXPECT_EQ(simplified(BRANCHES "ENTRY e {" X4
                                "p = s32[] constant(-7) ROOT r = f32[4] conditional(p, x, x), "
                                "branch_computations={t, f} }",
                       "simplify_control"),
            "abs(p0)");
  expect_unchanged(BRANCHES "ENTRY e {" X4
                            "p = pred[] parameter(1) ROOT r = f32[4] conditional(p, x, x), "
                            "true_computation=t, false_computation=f }",
                   "simplify_control");
}

#define STATE "(s32[], f32[4], f32[4])"
#define LOOP(condition)                                                                   \
  "body { s = " STATE                                                                     \
  " parameter(0) i = s32[] get-tuple-element(s), index=0\n"                               \
  "  a = f32[4] get-tuple-element(s), index=1 b = f32[4] get-tuple-element(s), index=2\n" \
  "  o = s32[] constant(1) j = add(i, o) c = add(a, b) ROOT t = tuple(j, c, b) }\n"       \
  "test { s = " STATE " parameter(0) i = s32[] get-tuple-element(s), index=0\n" condition " }\n"

TEST(SimplifyControl, LoopsThatNeverRun) {
  EXPECT_EQ(
      simplified(
          LOOP("ROOT r = pred[] constant(false)") "ENTRY e {" X4
                                                  "z = s32[] constant(0) init = tuple(z, x, x)\n"
                                                  "w = " STATE
                                                  " while(init), condition=test, body=body\n"
                                                  "ROOT r = f32[4] get-tuple-element(w), index=1 }",
          "simplify_control,fold_tuples"),
      "p0");
}

// A loop from `first` by `step` while the count is `direction` `limit`, with `work` in its body.
std::string counting_loop(const std::string& type, int first, int step,
                          const std::string& direction, int limit, const std::string& work) {
  return fmt::format(R"(
HloModule m
c {{
  s = ({0}[], f32[8,8]) parameter(0)
  i = {0}[] get-tuple-element(s), index=0
  n = {0}[] constant({4})
  ROOT t = pred[] compare(i, n), direction={3}
}}
b {{
  s = ({0}[], f32[8,8]) parameter(0)
  i = {0}[] get-tuple-element(s), index=0
  x = f32[8,8] get-tuple-element(s), index=1
  one = {0}[] constant({2})
  j = {0}[] add(i, one)
  y = f32[8,8] {5}
  ROOT t = ({0}[], f32[8,8]) tuple(j, y)
}}
ENTRY e {{
  x = f32[8,8] parameter(0)
  i = {0}[] constant({1})
  t = ({0}[], f32[8,8]) tuple(i, x)
  w = ({0}[], f32[8,8]) while(t), condition=c, body=b
  ROOT y = f32[8,8] get-tuple-element(w), index=1
}})",
                     type, first, step, direction, limit, work);
}

int64_t loops_left(const std::string& text) {
  auto module = parse(text);
  run(*module, "{simplify_control,fold_tuples,algebraic,dce}*");
  int64_t count = 0;
  for (const auto& computation : module->computations())
    for (const hlo::Instr* instr : computation->instrs()) count += instr->is(hlo::Opcode::while_);
  return count;
}

TEST(SimplifyControl, LoopsOfFewTripsAreWrittenOut) {
  const std::string sum = "add(x, x)";
  const std::string dot = "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
  EXPECT_EQ(loops_left(counting_loop("s32", 5, 1, "LT", 5, dot)), 0);
  EXPECT_EQ(loops_left(counting_loop("s32", 4, 1, "LT", 5, dot)), 0);
  EXPECT_EQ(loops_left(counting_loop("s32", 3, 1, "LT", 5, dot)), 1);
  EXPECT_EQ(loops_left(counting_loop("s64", 1, 1, "LE", 4, sum)), 0);
  EXPECT_EQ(loops_left(counting_loop("s64", 0, 1, "LE", 7, sum)), 1);  // eight
  EXPECT_EQ(loops_left(counting_loop("s32", 9, -3, "GT", 0, sum)), 0);
  EXPECT_EQ(loops_left(counting_loop("u8", 254, 1, "NE", 1, sum)), 0);  // wraps around
  EXPECT_EQ(loops_left(counting_loop("s32", 0, 0, "LT", 1, sum)), 1);   // endless
}

TEST(SimplifyControl, CarriedConstantsMoveInside) {
  const std::string text = LOOP(
      "n = s32[] constant(30) ROOT r = compare(i, n), direction=LT") "ENTRY e {" X4
                                                                     "z = s32[] constant(0) c = "
                                                                     "f32[4] constant({1, 2, 3, "
                                                                     "4}) "
                                                                     "init = tuple(z, x, c)\n"
                                                                     "w = " STATE
                                                                     " while(init), "
                                                                     "condition=test, "
                                                                     "body=body\n"
                                                                     "ROOT r = f32[4] "
                                                                     "get-tuple-element(w), "
                                                                     "index=1 "
                                                                     "}";
  auto module = parse(text);
  auto before = module->clone();
  EXPECT_TRUE(run(*module, "simplify_control").changed);
  EXPECT_EQ(expression(module->find("body")->root()->operand(1)),
            "add(get-tuple-element.1(p0), constant[4])");
  EXPECT_FALSE(run(*module, "simplify_control").changed);
  // The element is unread now, so it is removed.
  run(*module, "dce");
  EXPECT_EQ(module->find("body")->root()->operands().size(), 2u);
  expect_same_values(*before, *module, 1, false, "loop");
}

TEST(SimplifyControl, CarriedVariablesStay) {
  expect_unchanged(
      LOOP("n = s32[] constant(30) ROOT r = compare(i, n), direction=LT") "ENTRY e {" X4
                                                                          "z = s32[] constant(0) "
                                                                          "init = tuple(z, x, x)\n"
                                                                          "w = " STATE
                                                                          " while(init), "
                                                                          "condition=test, "
                                                                          "body=body\n"
                                                                          "ROOT r = f32[4] "
                                                                          "get-tuple-element(w), "
                                                                          "index=1 }",
      "simplify_control");
}

}  // namespace
}  // namespace heddle::opt
