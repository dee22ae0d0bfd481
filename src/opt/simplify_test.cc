// fold_constants, cse, dce, sink_movement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/text.h"
#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

#define X4 "x = f32[4] parameter(0)\n"

TEST(FoldConstants, EvaluatesWhatIsKnown) {
  EXPECT_EQ(simplified("a = s32[4] constant({1, 2, 3, 4}) b = s32[] constant(3)\n"
                       "c = s32[4] broadcast(b), dimensions={} d = multiply(a, c)\n"
                       "ROOT r = s32[2] slice(d), slice={[1:3]}",
                       "fold_constants"),
            "constant[2]");
  EXPECT_EQ(simplified("a = f32[] constant(2) b = f32[] constant(3) ROOT r = power(a, b)",
                       "fold_constants"),
            "8");
  EXPECT_EQ(simplified("i = s32[4] iota(), iota_dimension=0 n = s32[] constant(1)\n"
                       "b = s32[4] broadcast(n), dimensions={} ROOT r = add(i, b)",
                       "fold_constants"),
            "constant[4]");
}

TEST(FoldConstants, EqualElementsBecomeABroadcast) {
  EXPECT_EQ(simplified("ROOT a = f32[2,2] constant({{3, 3}, {3, 3}})", "fold_constants"),
            "broadcast[2,2]{}(3)");
  expect_unchanged("ROOT a = f32[2] constant({0, -0})", "fold_constants");
}

TEST(FoldConstants, BroadcastsAndIotasStay) {
  expect_unchanged("n = f32[] constant(1) ROOT r = f32[1024] broadcast(n), dimensions={}",
                   "fold_constants");
  expect_unchanged("ROOT r = s32[16] iota(), iota_dimension=0", "fold_constants");
  // Computed from generated values alone: cheaper to recompute than to load.
  expect_unchanged(
      "i = s32[2048] iota(), iota_dimension=0 n = s32[] constant(1)\n"
      "b = s32[2048] broadcast(n), dimensions={} ROOT r = add(i, b)",
      "fold_constants");
}

TEST(FoldConstants, LimitsCountBytesAndWork) {
  auto module = parse("a = s32[4] constant({1, 2, 3, 4}) ROOT r = negate(a)");
  pass::PassContext context;
  context.fold_limit_bytes = 15;
  EXPECT_FALSE(*fold_constants(*module, context));
  context.fold_limit_bytes = 16;
  context.fold_limit_ops = 7;
  EXPECT_FALSE(*fold_constants(*module, context));
  context.fold_limit_ops = 8;
  EXPECT_TRUE(*fold_constants(*module, context));
}

TEST(FoldConstants, EffectsAndLoopsStay) {
  expect_unchanged(
      "a = f32[] constant(0) b = f32[] constant(1)\n"
      "ROOT r = f32[4] rng(a, b), distribution=rng_uniform",
      "fold_constants");
}

TEST(Cse, EqualInstructionsAndComputations) {
  EXPECT_EQ(simplified(X4 "a = exponential(x) b = exponential(x) ROOT r = add(a, b)", "cse"),
            "add(exponential(p0), exponential(p0))");
  auto module = parse(
      "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = add(a, b) }\n"
      "plus { c = f32[] parameter(0) d = f32[] parameter(1) ROOT t = add(c, d) }\n"
      "ENTRY e {" X4
      "z = f32[] constant(0) y = f32[] constant(0)\n"
      "a = reduce(x, z), dimensions={0}, to_apply=add\n"
      "b = reduce(x, y), dimensions={0}, to_apply=plus ROOT r = multiply(a, b) }");
  auto before = module->clone();
  EXPECT_TRUE(run(*module, "cse").changed);
  const hlo::Instr* root = module->entry()->root();
  EXPECT_EQ(root->operand(0), root->operand(1));
  EXPECT_EQ(module->computations().size(), 2u);
  expect_same_values(*before, *module, 1, false, "cse");
}

TEST(Cse, WhatDiffersStays) {
  expect_unchanged(X4
                   "a = f16[4] convert(x) b = bf16[4] convert(x) c = f32[4] convert(a)\n"
                   "d = f32[4] convert(b) ROOT r = add(c, d)",
                   "cse");
  expect_unchanged(X4
                   "y = f32[4] parameter(1) a = subtract(x, y) b = subtract(y, x)\n"
                   "ROOT r = add(a, b)",
                   "cse");
  expect_unchanged(X4
                   "y = f32[4] parameter(1) a = pred[4] compare(x, y), direction=LT\n"
                   "b = pred[4] compare(x, y), direction=LE ROOT r = xor(a, b)",
                   "cse");
  expect_unchanged("a = f32[] constant(0) b = f32[] constant(-0) ROOT r = tuple(a, b)", "cse");
  // Large constants that differ only in the middle.
  const auto weights = [](char middle) {
    std::string values;
    for (int i = 0; i < 4096; ++i) values += {i > 0 ? ',' : ' ', i == 2048 ? middle : '1'};
    return "f32[4096] constant({" + values + "})";
  };
  expect_unchanged("a = " + weights('2') + " b = " + weights('3') + " ROOT r = add(a, b)", "cse");
  expect_unchanged(
      "a = f32[] constant(0) b = f32[] constant(1)\n"
      "c = f32[4] rng(a, b), distribution=rng_uniform\n"
      "d = f32[4] rng(a, b), distribution=rng_uniform ROOT r = add(c, d)",
      "cse");
}

TEST(Dce, InstructionsAndComputations) {
  auto module = parse(
      "unused { ROOT a = f32[] parameter(0) }\n"
      "ENTRY e {" X4 "y = f32[4] parameter(1) a = exponential(y) b = negate(a) ROOT r = abs(x) }");
  EXPECT_TRUE(run(*module, "dce").changed);
  EXPECT_EQ(module->computations().size(), 1u);
  EXPECT_EQ(module->entry()->instrs().size(), 3u);  // the parameters stay
}

TEST(Dce, EffectsStay) {
  expect_unchanged(X4 "t = token[] after-all() o = token[] outfeed(x, t) ROOT r = abs(x)", "dce");
}

#define STATE "(s32[], f32[4], f32[4], f32[4])"

// Element 2 feeds element 3, which is unread; element 1 is read outside.
TEST(Dce, ElementsOfALoopsState) {
  auto module =
      parse("body { s = " STATE
            " parameter(0) i = s32[] get-tuple-element(s), index=0\n"
            "  a = f32[4] get-tuple-element(s), index=1 b = f32[4] get-tuple-element(s), index=2\n"
            "  c = f32[4] get-tuple-element(s), index=3\n"
            "  o = s32[] constant(1) j = add(i, o) a2 = negate(a) c2 = add(b, c)\n"
            "  ROOT t = tuple(j, a2, b, c2) }\n"
            "test { s = " STATE
            " parameter(0) i = s32[] get-tuple-element(s), index=0\n"
            "  n = s32[] constant(3) ROOT r = compare(i, n), direction=LT }\n"
            "ENTRY e {" X4
            "  z = s32[] constant(0) init = tuple(z, x, x, x)\n"
            "  w = " STATE
            " while(init), condition=test, body=body\n"
            "  ROOT r = f32[4] get-tuple-element(w), index=1 }");
  auto before = module->clone();
  EXPECT_TRUE(run(*module, "dce").changed);
  EXPECT_EQ(module->find("body")->root()->operands().size(), 2u);
  EXPECT_EQ(module->find("test")->parameters()[0]->shape().elements().size(), 2u);
  expect_same_values(*before, *module, 1, false, "dce");
}

TEST(Dce, ALoopWhoseStateIsReadWholeStays) {
  expect_unchanged(
      "body { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0\n"
      "  a = f32[4] get-tuple-element(s), index=1 o = s32[] constant(1) j = add(i, o)\n"
      "  ROOT t = tuple(j, a) }\n"
      "test { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0\n"
      "  n = s32[] constant(3) ROOT r = compare(i, n), direction=LT }\n"
      "ENTRY e {" X4
      "  z = s32[] constant(0) init = tuple(z, x)\n"
      "  ROOT w = (s32[], f32[4]) while(init), condition=test, body=body }",
      "dce");
}

TEST(SinkMovement, ReshapesGoDown) {
  EXPECT_EQ(simplified("x = f32[6] parameter(0) a = f32[2,3] reshape(x) b = exponential(a)\n"
                       "ROOT r = negate(b)",
                       "sink_movement"),
            "reshape[2,3](negate(exponential(p0)))");
  // A bias along the last dimension is reshaped to match, as are scalars and constants.
  EXPECT_EQ(simplified("x = f32[6,4] parameter(0) y = f32[4] parameter(1) n = f32[] constant(2)\n"
                       "a = f32[2,3,4] reshape(x) b = f32[2,3,4] broadcast(y), dimensions={2}\n"
                       "c = f32[2,3,4] broadcast(n), dimensions={} d = add(a, b)\n"
                       "ROOT r = multiply(d, c)",
                       "sink_movement"),
            "reshape[2,3,4](multiply(add(p0, broadcast[6,4]{1}(p1)), broadcast[6,4]{}(2)))");
  EXPECT_EQ(simplified("x = f32[4] parameter(0) c = f32[2,2] constant({{1, 2}, {3, 4}})\n"
                       "a = f32[2,2] reshape(x) ROOT r = add(a, c)",
                       "sink_movement"),
            "reshape[2,2](add(p0, constant[4]))");
}

TEST(SinkMovement, TransposesGoDown) {
  EXPECT_EQ(simplified("x = f32[2,3] parameter(0) y = f32[2,3] parameter(1)\n"
                       "a = transpose(x), dimensions={1,0} b = transpose(y), dimensions={1,0}\n"
                       "ROOT r = add(a, b)",
                       "sink_movement"),
            "transpose[3,2]{1,0}(add(p0, p1))");
  EXPECT_EQ(simplified("x = f32[2,3] parameter(0) y = f32[3] parameter(1)\n"
                       "a = transpose(x), dimensions={1,0} b = f32[3,2] broadcast(y), "
                       "dimensions={0} ROOT r = add(a, b)",
                       "sink_movement"),
            "transpose[3,2]{1,0}(add(p0, broadcast[2,3]{1}(p1)))");
}

TEST(SinkMovement, WhatCannotComeAlongHolds) {
  expect_unchanged(
      "x = f32[6] parameter(0) y = f32[2,3] parameter(1) a = f32[2,3] reshape(x)\n"
      "ROOT r = add(a, y)",
      "sink_movement");
  // Repeated along a part of a dimension.
  expect_unchanged(
      "x = f32[6] parameter(0) y = f32[3] parameter(1) a = f32[2,3] reshape(x)\n"
      "b = f32[2,3] broadcast(y), dimensions={1} ROOT r = add(a, b)",
      "sink_movement");
  // It would be duplicated.
  expect_unchanged(
      "x = f32[2,3] parameter(0) a = transpose(x), dimensions={1,0} b = negate(a)\n"
      "ROOT r = tuple(a, b)",
      "sink_movement");
  expect_unchanged(
      "x = f32[2,3] parameter(0) y = f32[3,2] parameter(1)\n"
      "a = transpose(x), dimensions={1,0} ROOT r = add(a, y)",
      "sink_movement");
}

}  // namespace
}  // namespace heddle::opt
