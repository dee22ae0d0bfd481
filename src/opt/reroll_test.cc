// reroll: unrolled recurrences become loops.
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

int64_t count(const hlo::Module& module, Opcode opcode) {
  const auto& all = module.entry()->instrs();
  return std::count_if(all.begin(), all.end(),
                       [&](const Instr* instr) { return instr->is(opcode); });
}

struct Net {
  int steps = 10;
  bool reversed = false;
  bool simple_first = false;  // the first step has no state to read
  std::string state = "h";    // read by a step's product from the previous step
};

// h = tanh(x[t]·W + h·U), c = c·h + x[t]; x: [batch, time, features].
std::string net(const Net& n, const std::string& end) {
  std::string text =
      "  x = f32[3,12,5] parameter(0)\n  w = f32[5,5] parameter(1)\n"
      "  u = f32[5,5] parameter(2)\n  h0 = f32[3,5] parameter(3)\n  c0 = f32[3,5] parameter(4)\n";
  const char* dims = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  for (int t = 1; t <= n.steps; ++t) {
    const int at = n.reversed ? n.steps - t : t - 1;
    const std::string s = std::to_string(t), before = std::to_string(t - 1);
    text += "  p" + s + " = f32[3,1,5] slice(x), slice={[0:3], [" + std::to_string(at) + ":" +
            std::to_string(at + 1) + "], [0:5]}\n";
    text += "  x" + s + " = f32[3,5] reshape(p" + s + ")\n";
    text += "  a" + s + " = f32[3,5] dot(x" + s + ", w)" + dims;
    std::string sum = "a" + s;
    if (t > 1 || !n.simple_first) {
      text += "  b" + s + " = f32[3,5] dot(" + n.state + before + ", u)" + dims;
      text += "  s" + s + " = f32[3,5] add(a" + s + ", b" + s + ")\n";
      sum = "s" + s;
    }
    text += "  h" + s + " = f32[3,5] tanh(" + sum + ")\n";
    text += "  m" + s + " = f32[3,5] multiply(c" + before + ", h" + s + ")\n";
    text += "  c" + s + " = f32[3,5] add(m" + s + ", x" + s + ")\n";
  }
  return text + end;
}

// All states side by side, each with a new dimension.
std::string stacked(int from, int to, int64_t dim) {
  const std::string one = dim == 0 ? "f32[1,3,5]" : "f32[3,1,5]";
  const std::string n = std::to_string(to - from + 1);
  std::string text, names;
  for (int t = from; t <= to; ++t) {
    const std::string s = std::to_string(t);
    text += "  r" + s + " = " + one + " reshape(h" + s + ")\n";
    names += (names.empty() ? "r" : ", r") + s;
  }
  return text + "  ROOT all = f32[" + (dim == 0 ? n + ",3,5" : "3," + n + ",5") + "] concatenate(" +
         names + "), dimensions={" + std::to_string(dim) + "}\n";
}

std::unique_ptr<hlo::Module> rolled(const std::string& text) {
  auto module = parse(text);
  auto before = module->clone();
  run(*module, "reroll,dce");
  expect_same_values(*before, *module, 3, true, text);
  EXPECT_FALSE(run(*module, "reroll").changed);
  return module;
}

TEST(RerollTest, TheLastState) {
  auto module = rolled(net({}, "  ROOT o = (f32[3,5], f32[3,5]) tuple(h10, c10)\n"));
  EXPECT_EQ(count(*module, Opcode::while_), 1);
  EXPECT_EQ(count(*module, Opcode::dot), 1);  // x·W, for all times
  EXPECT_EQ(count(*module, Opcode::tanh), 0);
}

TEST(RerollTest, AllStates) {
  for (int64_t dim : {0, 1}) {
    auto module = rolled(net({}, stacked(1, 10, dim)));
    EXPECT_EQ(count(*module, Opcode::while_), 1);
    EXPECT_EQ(count(*module, Opcode::concatenate), 0);
    EXPECT_EQ(count(*module, Opcode::dot), 1);
  }
  auto some = rolled(net({}, stacked(4, 10, 1)));
  EXPECT_EQ(count(*some, Opcode::while_), 1);
}

TEST(RerollTest, FromTheEnd) {
  auto module = rolled(net({.reversed = true}, stacked(1, 10, 0)));
  EXPECT_EQ(count(*module, Opcode::while_), 1);
}

TEST(RerollTest, AFirstStepOfItsOwn) {
  auto module = rolled(net({.steps = 12, .simple_first = true}, stacked(1, 12, 1)));
  EXPECT_EQ(count(*module, Opcode::while_), 1);
  EXPECT_EQ(count(*module, Opcode::tanh), 1);
}

// A state in the middle is read outside, and so is the sum of two.
TEST(RerollTest, StatesInTheMiddle) {
  auto module = rolled(net({}, "  q = f32[3,5] add(h4, c7)\n  ROOT r = f32[3,5] add(q, h10)\n"));
  EXPECT_EQ(count(*module, Opcode::while_), 1);
}

// The second recurrence reads the states of the first.
TEST(RerollTest, OneBehindTheOther) {
  std::string text = net({}, "");
  const char* dims = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}\n";
  text +=
      "  v = f32[5,5] parameter(5)\n  y = f32[5,5] parameter(6)\n  g0 = f32[3,5] parameter(7)\n";
  for (int t = 1; t <= 10; ++t) {
    const std::string s = std::to_string(t);
    text += "  d" + s + " = f32[3,5] dot(h" + s + ", v)" + dims;
    text += "  e" + s + " = f32[3,5] dot(g" + std::to_string(t - 1) + ", y)" + dims;
    text += "  f" + s + " = f32[3,5] add(d" + s + ", e" + s + ")\n";
    text += "  g" + s + " = f32[3,5] tanh(f" + s + ")\n";
  }
  auto module = rolled(text + "  ROOT o = (f32[3,5], f32[3,5]) tuple(g10, h10)\n");
  EXPECT_GE(count(*module, Opcode::while_), 1);
  EXPECT_EQ(count(*module, Opcode::tanh), 0);
}

TEST(RerollTest, LeftAlone) {
  // Too short; separate steps.
  expect_unchanged(net({.steps = 6}, "  ROOT o = f32[3,5] add(h6, c6)\n"), "reroll");
  expect_unchanged(
      net({.state = "x"}, stacked(1, 9, 1)).replace(0, 0, "  x0 = f32[3,5] parameter(5)\n"),
      "reroll");
}

// A common input of all steps is computed from the first one, which cannot be in the loop.
TEST(RerollTest, WhatNeedsTheFirstStep) {
  std::string text = net({.steps = 12}, "");
  const std::string scale = "  k = f32[3,5] exponential(h1)\n";
  text.insert(text.find("  p2 ="), scale);
  for (int t = 2; t <= 12; ++t) {
    const std::string s = std::to_string(t), plain = "tanh(s" + s + ")";
    text.replace(text.find(plain), plain.size(), "multiply(s" + s + ", k)");
  }
  auto module = rolled(text + "  ROOT o = f32[3,5] add(h12, c12)\n");
  EXPECT_EQ(count(*module, Opcode::while_), 1);
  EXPECT_EQ(count(*module, Opcode::exponential), 1);
}

// A step in the middle is different: the steps around it are too few, or rolled separately.
TEST(RerollTest, AnOddStep) {
  std::string text = net({.steps = 12}, "  ROOT o = f32[3,5] add(h12, c12)\n");
  text.replace(text.find("tanh(s6)"), 8, "sine(s6)");
  rolled(text);
}

}  // namespace
}  // namespace heddle::opt
