// inline_lazily, and the result after fusion.
#include "opt/lazy_calls.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/text.h"
#include "hlo/verify.h"
#include "opt/passes.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;
using testing::HasSubstr;

// A computation of many instructions, and an entry that calls it `calls` times. `last`: the
// arguments after the state, by call.
std::string layers(int calls, const std::string& body, const std::string& arguments) {
  std::string text = "block {\n x = f32[4] parameter(0)\n w = f32[4] parameter(1)\n" + body;
  for (int i = 0; i < 100; ++i)
    text += fmt::format(" n{} = f32[4] tanh({})\n", i,
                        i == 0 ? std::string("y") : fmt::format("n{}", i - 1));
  text += " ROOT r = f32[4] add(n99, w)\n}\nENTRY e {\n x0 = f32[4] parameter(0)\n";
  for (int i = 0; i < calls; ++i) text += fmt::format(" w{} = f32[4] parameter({})\n", i, i + 1);
  text += " c = f32[4] constant({1, 2, 3, 4})\n";
  for (int i = 0; i < calls; ++i)
    text += fmt::format(" {}x{} = f32[4] call(x{}, {}), to_apply=block\n",
                        i + 1 == calls ? "ROOT " : "", i + 1, i,
                        arguments.empty() ? fmt::format("w{}", i) : arguments);
  return text + "}\n";
}

int64_t count(const hlo::Module& module, Opcode opcode) {
  const auto& instrs = module.entry()->instrs();
  return std::count_if(instrs.begin(), instrs.end(),
                       [&](const Instr* instr) { return instr->is(opcode); });
}

// Lazy and immediate inlining give the same bits, in the interpreter (compiled:
// tests/lazy_programs_test.cc).
void expect_same_as_at_once(const std::string& text) {
  auto lazily = parse(text), at_once = parse(text);
  run(*at_once, "inline_calls");
  run(*at_once, "drop_layouts,inline_calls,cse,dce");
  run(*lazily, "drop_layouts,inline_lazily,cse,dce");
  run(*lazily, "inline_kept_calls");
  ASSERT_TRUE(hlo::verify(*lazily));
  EXPECT_EQ(count(*lazily, Opcode::call), 0);
  expect_same_values(*at_once, *lazily, 7, /*inexact=*/false, "lazily and at once");
}

TEST(LazyCalls, RepeatedOnesStayUntilTheyAreCopied) {
  const std::string text = layers(6, " y = f32[4] multiply(x, w)\n", "");
  auto module = parse(text);
  const pass::RunReport report = run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 6);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("6 calls of %block"));
  EXPECT_FALSE(*inline_lazily(*module, {}));
  EXPECT_TRUE(run(*module, "inline_kept_calls").changed);
  ASSERT_TRUE(hlo::verify(*module));
  EXPECT_EQ(count(*module, Opcode::tanh), 600);
  EXPECT_EQ(module->computations().size(), 1u);
  expect_same_as_at_once(text);
}

TEST(LazyCalls, FewOrSmallOnesGoAtOnce) {
  auto module = parse(layers(2, " y = f32[4] multiply(x, w)\n", ""));
  run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 0);
}

// Constants that are the same in all calls move inside, and are copied once; others do not.
TEST(LazyCalls, ConstantsMoveInsideWhereTheyAreTheSame) {
  const std::string text = layers(6, " y = f32[4] multiply(x, w)\n", "c");
  auto module = parse(text);
  run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 6);
  EXPECT_EQ(module->find("block")->parameters().size(), 1u);
  run(*module, "inline_kept_calls");
  EXPECT_EQ(count(*module, Opcode::constant), 1);
  expect_same_as_at_once(text);

  std::string others = layers(6, " y = f32[4] multiply(x, w)\n", "");
  others.replace(others.find("call(x3, w3)"), 12, "call(x3, c)");
  auto mixed = parse(others);
  const pass::RunReport report = run(*mixed, "inline_lazily");
  EXPECT_EQ(count(*mixed, Opcode::call), 0);
  EXPECT_THAT(report.notes.at(0), HasSubstr("lazy-constants"));
}

TEST(LazyCalls, WhatTheWholeGraphDecidesGoesAtOnce) {
  const std::string window =
      " z = f32[] constant(0)\n"
      " y = f32[4] reduce-window(x, z), window={size=3 pad=1_1}, to_apply=add\n";
  auto module = parse("add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = add(a, b) }\n" +
                      layers(6, window, ""));
  const pass::RunReport report = run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 0);
  EXPECT_THAT(report.notes.at(0), HasSubstr("lazy-layout"));
}

// A matrix shared by all calls: it may be an unrolled loop.
TEST(LazyCalls, StepsOfARecurrenceGoAtOnce) {
  std::string text =
      "step {\n x = f32[1,4] parameter(0)\n w = f32[4,4] parameter(1)\n"
      " d = f32[1,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format(" {}n{} = f32[1,4] tanh({})\n", i == 59 ? "ROOT " : "", i,
                        i == 0 ? std::string("d") : fmt::format("n{}", i - 1));
  text += "}\nENTRY e {\n x0 = f32[1,4] parameter(0)\n w = f32[4,4] parameter(1)\n";
  for (int i = 0; i < 9; ++i)
    text += fmt::format(" {}x{} = f32[1,4] call(x{}, w), to_apply=step\n", i == 8 ? "ROOT " : "",
                        i + 1, i);
  auto module = parse(text + "}\n");
  const pass::RunReport report = run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 0);
  EXPECT_THAT(report.notes.at(0), HasSubstr("lazy-recurrence"));
}

// The same matrices, but no call reads another's result: micro-batches stay one function.
TEST(LazyCalls, MicroBatchesMayShareWeights) {
  std::string text =
      "layer {\n x = f32[8,4] parameter(0)\n w = f32[4,4] parameter(1)\n"
      " d = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format(" {}n{} = f32[8,4] tanh({})\n", i == 59 ? "ROOT " : "", i,
                        i == 0 ? std::string("d") : fmt::format("n{}", i - 1));
  text += "}\nENTRY e {\n w = f32[4,4] parameter(0)\n";
  std::string names, shapes;
  for (int i = 0; i < 9; ++i) {
    text += fmt::format(
        " x{0} = f32[8,4] parameter({1})\n h{0} = f32[8,4] negate(x{0})\n"
        " y{0} = f32[8,4] call(h{0}, w), to_apply=layer\n",
        i, i + 1);
    names += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
    shapes += fmt::format("{}f32[8,4]", i == 0 ? "" : ", ");
  }
  text += fmt::format(" ROOT t = ({}) tuple({})\n}}\n", shapes, names);
  auto module = parse(text);
  run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 9);
  expect_same_as_at_once(text);
}

// Unread results and arguments are removed; equal computations are merged.
TEST(LazyCalls, UnreadResultsAndArgumentsGo) {
  std::string text;
  for (const char* name : {"one", "other"}) {
    text += fmt::format(
        "{} {{\n x = f32[4] parameter(0)\n u = f32[4] parameter(1)\n v = f32[4] parameter(2)\n",
        name);
    for (int i = 0; i < 100; ++i)
      text += fmt::format(" n{} = f32[4] tanh({})\n", i,
                          i == 0 ? std::string("x") : fmt::format("n{}", i - 1));
    text +=
        " a = f32[4] add(n99, v)\n m = f32[4] multiply(x, u)\n"
        " ROOT r = (f32[4], f32[4], f32[4]) tuple(m, a, n99)\n}\n";
  }
  text += "ENTRY e {\n x0 = f32[4] parameter(0)\n u = f32[4] parameter(1)\n";
  for (int i = 0; i < 6; ++i)
    text += fmt::format(
        " v{0} = f32[4] parameter({2})\n"
        " c{0} = (f32[4], f32[4], f32[4]) call(x{0}, u, v{0}), to_apply={3}\n"
        " y{0} = f32[4] get-tuple-element(c{0}), index=2\n"
        " z{0} = f32[4] get-tuple-element(c{0}), index=1\n"
        " {4}x{1} = f32[4] subtract(z{0}, y{0})\n",
        i, i + 1, i + 2, i % 2 == 0 ? "one" : "other", i == 5 ? "ROOT " : "");
  text += "}\n";
  auto module = parse(text);
  run(*module, "inline_lazily");
  EXPECT_EQ(count(*module, Opcode::call), 6);
  ASSERT_EQ(module->computations().size(), 2u);
  EXPECT_EQ(module->find("one")->parameters().size(), 2u);
  EXPECT_EQ(module->find("one")->root()->operands().size(), 2u);
  expect_same_as_at_once(text);
}

}  // namespace
}  // namespace heddle::opt
