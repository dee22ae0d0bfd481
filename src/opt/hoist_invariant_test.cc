// hoist_invariant: loop-invariant values are computed before the loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "opt/passes.h"
#include "opt/pipeline.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;

int64_t count(const hlo::Module& module, std::string_view computation, Opcode opcode) {
  const auto& all = module.find(computation)->instrs();
  return std::count_if(all.begin(), all.end(),
                       [&](const Instr* instr) { return instr->is(opcode); });
}

// Three trips; the body adds `value`, computed from w (passed on unchanged) and i, to the sum.
std::string loop(const std::string& value, const std::string& next_w = "w") {
  return "HloModule m\n"
         "condition {\n"
         "  s = (s32[], f32[4,4], f32[4,4]) parameter(0)\n"
         "  i = s32[] get-tuple-element(s), index=0\n"
         "  n = s32[] constant(3)\n"
         "  ROOT less = pred[] compare(i, n), direction=LT\n"
         "}\n"
         "body {\n"
         "  s = (s32[], f32[4,4], f32[4,4]) parameter(0)\n"
         "  i = s32[] get-tuple-element(s), index=0\n"
         "  sum = f32[4,4] get-tuple-element(s), index=1\n"
         "  w = f32[4,4] get-tuple-element(s), index=2\n"
         "  one = s32[] constant(1)\n"
         "  next = s32[] add(i, one)\n" +
         value + "  more = f32[4,4] add(sum, value)\n" +
         "  ROOT r = (s32[], f32[4,4], f32[4,4]) tuple(next, more, " + next_w +
         ")\n"
         "}\n"
         "ENTRY main {\n"
         "  x = f32[4,4] parameter(0)\n"
         "  y = f32[4,4] parameter(1)\n"
         "  zero = s32[] constant(0)\n"
         "  start = (s32[], f32[4,4], f32[4,4]) tuple(zero, x, y)\n"
         "  state = (s32[], f32[4,4], f32[4,4]) while(start), condition=condition, body=body\n"
         "  ROOT out = f32[4,4] get-tuple-element(state), index=1\n"
         "}\n";
}

std::unique_ptr<hlo::Module> hoisted(const std::string& text) {
  auto module = parse(text);
  auto before = module->clone();
  run(*module, "hoist_invariant,dce");
  expect_same_values(*before, *module, 3, false, "hoist_invariant");
  EXPECT_FALSE(run(*module, "hoist_invariant").changed);
  return module;
}

constexpr char kProduct[] =
    "  t = f32[4,4] transpose(w), dimensions={1,0}\n"
    "  e = f32[4,4] exponential(t)\n"
    "  value = f32[4,4] dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";

TEST(HoistInvariant, ChainOutOfTheLoop) {
  auto module = hoisted(loop(kProduct));
  EXPECT_EQ(count(*module, "body", Opcode::dot), 0);
  EXPECT_EQ(count(*module, "body", Opcode::exponential), 0);
  EXPECT_EQ(count(*module, "main", Opcode::dot), 1);
  // Only values that are read inside are carried: w itself no longer is.
  EXPECT_EQ(module->find("body")->root()->operands().size(), 3u);
}

TEST(HoistInvariant, WhatChangesStays) {
  auto module = hoisted(loop(kProduct, "more"));
  EXPECT_EQ(count(*module, "body", Opcode::dot), 1);
  module =
      hoisted(loop("  f = f32[] convert(i)\n"
                   "  b = f32[4,4] broadcast(f), dimensions={}\n"
                   "  value = f32[4,4] multiply(b, w)\n"));
  EXPECT_EQ(count(*module, "body", Opcode::multiply), 1);
}

TEST(HoistInvariant, ViewsAndWhatGrowsStay) {
  auto module =
      hoisted(loop("  a = f32[1,4] slice(w), slice={[0:1], [0:4]}\n"
                   "  v = f32[4] reshape(a)\n"
                   "  value = f32[4,4] broadcast(v), dimensions={1}\n"));
  EXPECT_EQ(count(*module, "main", Opcode::slice), 0);
  module =
      hoisted(loop("  a = f32[1,4] slice(w), slice={[0:1], [0:4]}\n"
                   "  v = f32[4] reshape(a)\n"
                   "  b = f32[4,4] broadcast(v), dimensions={1}\n"
                   "  value = f32[4,4] exponential(b)\n"));
  EXPECT_EQ(count(*module, "main", Opcode::exponential), 0);
}

TEST(HoistInvariant, OutOfNestedLoops) {
  const std::string inner = loop(kProduct);
  std::string text = inner.substr(0, inner.find("ENTRY"));
  text +=
      "outer_condition {\n"
      "  s = (s32[], f32[4,4], f32[4,4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n"
      "  n = s32[] constant(2)\n"
      "  ROOT less = pred[] compare(i, n), direction=LT\n"
      "}\n"
      "outer {\n"
      "  s = (s32[], f32[4,4], f32[4,4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n"
      "  x = f32[4,4] get-tuple-element(s), index=1\n"
      "  w = f32[4,4] get-tuple-element(s), index=2\n"
      "  one = s32[] constant(1)\n"
      "  next = s32[] add(i, one)\n"
      "  zero = s32[] constant(0)\n"
      "  start = (s32[], f32[4,4], f32[4,4]) tuple(zero, x, w)\n"
      "  state = (s32[], f32[4,4], f32[4,4]) while(start), condition=condition, body=body\n"
      "  y = f32[4,4] get-tuple-element(state), index=1\n"
      "  ROOT r = (s32[], f32[4,4], f32[4,4]) tuple(next, y, w)\n"
      "}\n"
      "ENTRY main {\n"
      "  x = f32[4,4] parameter(0)\n"
      "  y = f32[4,4] parameter(1)\n"
      "  zero = s32[] constant(0)\n"
      "  start = (s32[], f32[4,4], f32[4,4]) tuple(zero, x, y)\n"
      "  state = (s32[], f32[4,4], f32[4,4]) while(start), condition=outer_condition, body=outer\n"
      "  ROOT out = f32[4,4] get-tuple-element(state), index=1\n"
      "}\n";
  auto module = hoisted(text);
  EXPECT_EQ(count(*module, "main", Opcode::dot), 1);
  EXPECT_EQ(count(*module, "outer", Opcode::dot), 0);
  EXPECT_EQ(count(*module, "body", Opcode::dot), 0);
}

TEST(HoistInvariant, InThePipeline) {
  auto module = parse(loop(kProduct));
  auto before = module->clone();
  run(*module, pipeline_for(Level::O2));
  expect_same_values(*before, *module, 3, true, "pipeline");
}

}  // namespace
}  // namespace heddle::opt
