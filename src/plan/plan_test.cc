#include "plan/plan.h"

#include <gtest/gtest.h>

#include "plan/fake_run.h"
#include "plan/host_call.h"
#include "program/text.h"

namespace heddle::plan {
namespace {

using program::BufferKind;
using program::Program;

// A module from text in which every fusion has a fake kernel (in place of operand 0 if its name
// contains "_e").
struct Planned {
  explicit Planned(const std::string& text, const Options& options = {}, const Names& names = {}) {
    auto parsed = hlo::parse_module(text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    module = std::move(*parsed);
    for (const auto& computation : module->computations())
      for (const hlo::Instr* instr : computation->instrs()) {
        if (!instr->is(hlo::Opcode::fusion)) continue;
        const bool elementwise = instr->name().find("_e") != std::string::npos;
        kernels.emplace(
            instr, fake_kernel(*instr, elementwise ? std::vector<int>{0} : std::vector<int>{}));
      }
    auto planned = plan(*module, kernels, names, target::Target(), options);
    if (planned) {
      program = std::move(*planned);
    } else {
      error = planned.error();
    }
  }
  std::unique_ptr<hlo::Module> module;
  Kernels kernels;
  Program program;
  Error error;

  void expect_correct() const {
    std::vector<Bytes> inputs;
    for (const program::Port& port : program.inputs) {
      Bytes bytes(static_cast<size_t>(program::stored_bytes(port.shape)));
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<uint8_t>(i * 7 + 31 * inputs.size() + 1);
      inputs.push_back(std::move(bytes));
    }
    EXPECT_EQ(fake_run(program, inputs), Reference(*module, kernels, inputs).outputs)
        << program::to_string(program);
  }
};

const std::string kFused = R"(
f1 { p = f32[16] parameter(0)  ROOT n = f32[16] negate(p) }
f2 { p = f32[16] parameter(0)  q = f32[16] parameter(1)  m = f32[16] multiply(p, q)  ROOT n = f32[16] add(m, q) }
)";

TEST(plan, IncrementInPlaceOfADonatedInput) {
  const Planned p("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n" + kFused + R"(
ENTRY e { x = f32[16] parameter(0)  ROOT inc_e = f32[16] fusion(x), kind=kLoop, calls=f1 })");
  EXPECT_EQ(p.program.memory.plan_bytes, 0);
  ASSERT_EQ(p.program.commands.size(), 1u);
  ASSERT_EQ(p.program.buffers.size(), 2u);
  EXPECT_EQ(p.program.buffers[1].alias, p.program.inputs[0].buffer);
  p.expect_correct();
}

TEST(plan, KernelThatMayNotRunInPlaceGetsACopy) {
  const Planned p("HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\n" + kFused + R"(
ENTRY e { x = f32[16] parameter(0)  ROOT inc_d = f32[16] fusion(x), kind=kLoop, calls=f1 })");
  ASSERT_EQ(p.program.commands.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<program::Copy>(p.program.commands[1]));
  EXPECT_EQ(p.program.memory.plan_bytes, 64);
  p.expect_correct();
}

TEST(plan, ReadersRunBeforeTheirInputIsOverwritten) {
  // `late` reads x and comes after `inc_e`, which overwrites x: it must run before that.
  const Planned p("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  inc_e = f32[16] fusion(x), kind=kLoop, calls=f1
  late_d = f32[16] fusion(x), kind=kLoop, calls=f1
  ROOT t = (f32[16], f32[16]) tuple(inc_e, late_d)
})");
  ASSERT_EQ(p.program.commands.size(), 2u);
  EXPECT_EQ(p.program.command_info[0].name, "late_d");
  p.expect_correct();
}

TEST(plan, ReaderThatDependsOnTheOverwriterForcesACopy) {
  const Planned p("HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  inc_e = f32[16] fusion(x), kind=kLoop, calls=f1
  late_d = f32[16] fusion(x, inc_e), kind=kLoop, calls=f2
  ROOT t = (f32[16], f32[16]) tuple(inc_e, late_d)
})");
  ASSERT_EQ(p.program.commands.size(), 3u);
  p.expect_correct();
}

TEST(plan, SwapOfTwoDonatedInputs) {
  const Planned p(
      "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }" +
      kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  y = f32[16] parameter(1)
  ROOT t = (f32[16], f32[16]) tuple(y, x)
})");
  EXPECT_LE(p.program.commands.size(), 4u);
  p.expect_correct();
}

TEST(plan, DonatedInputHandedOnNeedsNothing) {
  const Planned p("HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n" + kFused + R"(
ENTRY e { ROOT x = f32[16] parameter(0) })");
  EXPECT_TRUE(p.program.commands.empty());
  p.expect_correct();
}

TEST(plan, TwoOutputsOfOneDonatedInput) {
  const std::string entry = R"(
ENTRY e {
  x = f32[16] parameter(0)
  a_e = f32[16] fusion(x), kind=kLoop, calls=f1
  b_e = f32[16] fusion(a_e), kind=kLoop, calls=f1
  ROOT t = (f32[16], f32[16]) tuple(a_e, b_e)
})";
  const Planned may(
      "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}, may-alias) }" +
      kFused + entry);
  may.expect_correct();
  const Planned must(
      "HloModule m, input_output_alias={ {0}: (0, {}, must-alias), {1}: (0, {}, must-alias) }" +
      kFused + entry);
  EXPECT_NE(must.error.message.find("output 1 must be the memory of input 0"), std::string::npos);
}

TEST(plan, OutputsThatAreInputsConstantsAndDuplicates) {
  const Planned p("HloModule m\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  c = f32[2] constant({1, 2})
  a = f32[16] fusion(x), kind=kLoop, calls=f1
  ROOT t = (f32[16], f32[2], f32[16], f32[16]) tuple(x, c, a, a)
})");
  ASSERT_EQ(p.program.outputs.size(), 4u);
  // The kernel, and three copies: they are commands, so that they are counted and timed as such.
  EXPECT_EQ(p.program.commands.size(), 4u);
  int64_t copies = 0;
  for (const program::Command& command : p.program.commands)
    if (const auto* copy = std::get_if<program::Copy>(&command)) {
      ++copies;
      const program::Buffer& to = p.program.buffers[copy->to.buffer.index()];
      EXPECT_EQ(to.kind, program::BufferKind::output);
      EXPECT_NE(to.number, 2);
    }
  EXPECT_EQ(copies, 3);
  p.expect_correct();
}

TEST(plan, ChainRunsInPlaceThroughToTheOutput) {
  const Planned p("HloModule m\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  a_d = f32[16] fusion(x), kind=kLoop, calls=f1
  r = f32[4,4] reshape(a_d)
  b = f32[16] bitcast(r)
  b_e = f32[16] fusion(b), kind=kLoop, calls=f1
  ROOT c_e = f32[16] fusion(b_e, x), kind=kLoop, calls=f2
})");
  EXPECT_EQ(p.program.memory.plan_bytes, 0);  // all of it in the output's memory
  EXPECT_EQ(p.program.memory.unshared_bytes, 128);
  EXPECT_EQ(p.program.commands.size(), 3u);
  p.expect_correct();
}

// Nor by the last command of a trip: the next trip reads it again.
TEST(plan, WhatALoopReadsFromOutsideIsNotOverwritten) {
  const Planned p("HloModule m\n" + kFused + R"(
f3 { p = f32[16] parameter(0)  z = s32[] constant(0)  ROOT c = pred[] compare(z, z), direction=EQ }
f4 { p = f32[16] parameter(0)  q = f32[16] parameter(1)  n = f32[16] negate(p)
  m = f32[16] multiply(p, q)  ROOT t = (f32[16], f32[16]) tuple(n, m) }
more { s = (f32[16], f32[16]) parameter(0)  a = f32[16] get-tuple-element(s), index=0
  ROOT again = pred[] fusion(a), kind=kLoop, calls=f3 }
body { s = (f32[16], f32[16]) parameter(0)
  a = f32[16] get-tuple-element(s), index=0
  x = f32[16] get-tuple-element(s), index=1
  both_e = (f32[16], f32[16]) fusion(x, a), kind=kLoop, calls=f4
  n = f32[16] get-tuple-element(both_e), index=1
  ROOT t = (f32[16], f32[16]) tuple(n, x) }
ENTRY e {
  p = f32[16] parameter(0)
  x = f32[16] fusion(p), kind=kLoop, calls=f1
  init = (f32[16], f32[16]) tuple(p, x)
  w = (f32[16], f32[16]) while(init), condition=more, body=body
  ROOT r = f32[16] get-tuple-element(w), index=0
})");
  p.expect_correct();
}

TEST(plan, OnceSectionTakesWhatDependsOnConstantsOnly) {
  const Planned p("HloModule m\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  w = f32[16] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
  w1_d = f32[16] fusion(w), kind=kLoop, calls=f1
  w2_d = f32[16] fusion(w1_d), kind=kLoop, calls=f1
  i = s32[16] iota(), iota_dimension=0
  w3 = f32[16] convert(i)
  a_d = f32[16] fusion(x, w2_d), kind=kLoop, calls=f2
  ROOT b_d = f32[16] fusion(a_d, w3), kind=kLoop, calls=f2
})");
  EXPECT_EQ(p.program.once.size(), 4u);
  EXPECT_EQ(p.program.commands.size(), 2u);
  EXPECT_EQ(p.program.once_bytes, 128);  // w2 and w3; the others are temporaries
  EXPECT_EQ(p.program.memory.plan_bytes, 64);
  p.expect_correct();
}

TEST(plan, HostCallsCarryALittleModule) {
  const Planned p(R"(HloModule m
lt { a = f32[] parameter(0)  b = f32[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[8] parameter(0)
  k = s32[8] parameter(1)
  ROOT s = (f32[8], s32[8]) sort(x, k), dimensions={0}, to_apply=lt
})");
  ASSERT_EQ(p.program.commands.size(), 1u);
  const auto& sort = std::get<program::HostCall>(p.program.commands[0]);
  EXPECT_EQ(sort.function, "interp");
  EXPECT_EQ(sort.arguments.size(), 2u);
  EXPECT_EQ(sort.results.size(), 2u);
  auto module = hlo::parse_module(sort.text);
  ASSERT_TRUE(module) << module.error().message << "\n" << sort.text;
  EXPECT_EQ((*module)->entry()->parameters().size(), 2u);
  EXPECT_TRUE((*module)->entry()->root()->is(hlo::Opcode::sort));
  p.expect_correct();
}

TEST(plan, ControlEdgesAreHonoured) {
  for (const Order order : {Order::as_is, Order::bfs, Order::dfs, Order::list, Order::beam}) {
    Options options;
    options.order = order;
    // a after b: by the edge, and through a reshape that is no command.
    const Planned p("HloModule m\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  b = f32[16] fusion(x), kind=kLoop, calls=f1
  r = f32[16] reshape(x), control-predecessors={b}
  a = f32[16] fusion(r), kind=kLoop, calls=f1
  q = f32[16] reshape(a)
  c = f32[16] fusion(x), kind=kLoop, calls=f1, control-predecessors={q}
  ROOT t = (f32[16], f32[16], f32[16]) tuple(c, a, b)
})",
                    options);
    ASSERT_EQ(p.program.command_info.size(), 3u);
    EXPECT_EQ(p.program.command_info[0].name, "b");
    EXPECT_EQ(p.program.command_info[1].name, "a");
    EXPECT_EQ(p.program.command_info[2].name, "c");
    p.expect_correct();
  }
}

TEST(plan, EffectsStayAndKeepTheirOrder) {
  const Planned p(R"(HloModule m
ENTRY e {
  lo = f32[] constant(0)
  hi = f32[] constant(1)
  unused = f32[8] rng(lo, hi), distribution=rng_uniform
  dead = f32[] add(lo, hi)
  ROOT used = f32[8] rng(lo, hi), distribution=rng_uniform
})");
  ASSERT_EQ(p.program.command_info.size(), 2u);
  EXPECT_EQ(p.program.command_info[0].name, "unused");
  EXPECT_EQ(p.program.command_info[1].name, "used");
  EXPECT_TRUE(p.program.once.empty());
}

std::vector<std::string> command_names(const Planned& p) {
  std::vector<std::string> names;
  for (const program::CommandInfo& info : p.program.command_info) names.push_back(info.name);
  return names;
}

// Another order would need less memory, if it were allowed.
TEST(plan, EffectsAndTokensHoldBackWhatWouldSaveMemory) {
  const Planned effects(R"(HloModule m
ENTRY e {
  lo = f32[] parameter(0)
  hi = f32[] parameter(1)
  first = f32[1000] rng(lo, hi), distribution=rng_uniform
  second = f32[900] rng(lo, hi), distribution=rng_uniform
  c = f32[10] slice(second), slice={[0:10]}
  ROOT r = f32[1010] concatenate(first, c), dimensions={0}
})");
  EXPECT_EQ(command_names(effects), (std::vector<std::string>{"first", "second", "c", "r"}));
  const Planned tokens(R"(HloModule m
ENTRY e {
  x = f32[500] parameter(0)
  y = f32[1000] parameter(1)
  v = f32[500] negate(x)
  b = f32[1000] negate(y)
  t = token[] after-all()
  out = token[] outfeed(b, t), outfeed_shape=f32[1000]
  u = token[] after-all(out)
  w = f32[500] add-dependency(v, u)
  ROOT n = f32[500] negate(w)
})");
  EXPECT_EQ(command_names(tokens), (std::vector<std::string>{"b", "out", "v", "n"}));
}

TEST(plan, TokensAndDependencies) {
  const Planned p(R"(HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  y = f32[8] add-dependency(x, t)
  n = f32[8] negate(y)
  b = f32[8] opt-barrier(n)
  ROOT r = (f32[8], token[]) tuple(b, t)
})");
  EXPECT_EQ(p.program.commands.size(), 1u);
  EXPECT_EQ(p.program.outputs.size(), 2u);
}

TEST(plan, NamesOfPorts) {
  const std::string text = R"(HloModule m
ENTRY e {
  w = (f32[4], (s32[], f32[2])) parameter(0)
  x = f32[4] parameter(1)
  a = f32[4] get-tuple-element(w), index=0
  ROOT t = (f32[4], f32[4]) tuple(a, x)
})";
  const Planned p(text);
  std::vector<std::string> names;
  for (const program::Port& port : p.program.inputs)
    names.push_back(port.name + "|" + port.alias_name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"arg0.0|w.0", "arg0.1.0|w.1.0", "arg0.1.1|w.1.1", "arg1|x"}));
  EXPECT_EQ(p.program.outputs[1].name, "out1");
  const Planned named(text, {}, {{"one", "two"}, {"uno"}, {"first"}});
  EXPECT_EQ(named.program.inputs[0].name, "one");
  EXPECT_EQ(named.program.inputs[0].alias_name, "uno");
  EXPECT_EQ(named.program.inputs[1].alias_name, "");
  EXPECT_EQ(named.program.inputs[3].name, "arg1");
  EXPECT_EQ(named.program.outputs[0].name, "first");
  EXPECT_EQ(named.program.outputs[1].name, "out1");
}

TEST(plan, ErrorsOfTheUser) {
  Options options;
  options.memory_limit_bytes = 100;
  const std::string entry = R"(
ENTRY e {
  x = f32[16] parameter(0)
  a_d = f32[16] fusion(x), kind=kLoop, calls=f1
  b_d = f32[16] fusion(a_d), kind=kLoop, calls=f1
  c_d = f32[16] fusion(a_d, b_d), kind=kLoop, calls=f2
  ROOT d_d = f32[16] fusion(c_d), kind=kLoop, calls=f1
})";
  const Planned limited("HloModule m\n" + kFused + entry, options);
  EXPECT_EQ(limited.error.kind, ErrorKind::memory);
  EXPECT_NE(limited.error.message.find("need 192 bytes"), std::string::npos)
      << limited.error.message;
  options.memory_limit_bytes = 192;
  EXPECT_EQ(Planned("HloModule m\n" + kFused + entry, options).error.message, "");
  options.static_memory = false;  // a pool needs the bytes live at one time
  EXPECT_EQ(Planned("HloModule m\n" + kFused + entry, options).error.message, "");
  options.memory_limit_bytes = 100;
  const Planned pooled("HloModule m\n" + kFused + entry, options);
  EXPECT_NE(pooled.error.message.find("need 192 bytes"), std::string::npos) << pooled.error.message;
  const Planned unbounded(
      "HloModule m\nENTRY e { x = f32[?] parameter(0)  ROOT n = f32[?] negate(x) }");
  EXPECT_NE(unbounded.error.message.find("--dim"), std::string::npos);
}

// k1, k2 -> k3 and k4, k5 -> k6 in the module's order: four values live at the same time; in the
// cheapest order three. That order is used if the module's exceeds the limit.
TEST(plan, LimitAsksForTheCheapestOrder) {
  const std::string text = "HloModule m\n" + kFused + R"(
ENTRY e {
  x = f32[16] parameter(0)
  k1 = f32[16] fusion(x), kind=kLoop, calls=f1
  k2 = f32[16] fusion(x), kind=kLoop, calls=f1
  k4 = f32[16] fusion(x), kind=kLoop, calls=f1
  k5 = f32[16] fusion(x), kind=kLoop, calls=f1
  k3 = f32[16] fusion(k1, k2), kind=kLoop, calls=f2
  k6 = f32[16] fusion(k4, k5), kind=kLoop, calls=f2
  ROOT r = f32[16] fusion(k3, k6), kind=kLoop, calls=f2
})";
  Options options;
  options.order = Order::as_is;
  const Planned free_of_limits(text, options);
  EXPECT_EQ(free_of_limits.program.command_info[2].name, "k4");
  options.memory_limit_bytes = free_of_limits.program.memory.plan_bytes - 64;
  const Planned limited(text, options);
  EXPECT_EQ(limited.error.message, "");
  EXPECT_LE(limited.program.memory.plan_bytes, options.memory_limit_bytes);
  limited.expect_correct();
}

TEST(plan, CommandInfoNamesOperators) {
  const Planned p("HloModule m\n" + kFused + R"(
ENTRY e { x = f32[16] parameter(0)  ROOT a = f32[16] fusion(x, x), kind=kLoop, calls=f2 })");
  EXPECT_EQ(p.program.command_info[0].operators, "multiply, add");
  EXPECT_EQ(p.program.kernels.size(), 1u);
  EXPECT_EQ(p.program.name, "m");
}

TEST(plan, ConstantsWithALayoutLieSo) {
  const Planned p(R"(HloModule m
ENTRY e {
  x = f32[] parameter(0)
  c = f32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})
  ROOT t = (f32[], f32[2,3]{0,1}) tuple(x, c)
})");
  const program::Copy* copy = nullptr;
  for (const program::Command& command : p.program.commands)
    if (const auto* one = std::get_if<program::Copy>(&command))
      if (one->to.buffer == p.program.outputs[1].buffer) copy = one;
  ASSERT_NE(copy, nullptr);
  const auto& value = p.program.constants[copy->from.buffer.index()];
  std::vector<float> got(6);
  std::memcpy(got.data(), value.data(), 24);
  EXPECT_EQ(got, (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

}  // namespace
}  // namespace heddle::plan
