// The text produced by the pass, and its values over two evaluations: they equal the numbers of the
// interpreter, which keeps the state itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hlo/state_arrays.h"
#include "hlo/text.h"
#include "interp/interp.h"
#include "interp/random_inputs.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/pipeline.h"
#include "opt/test_util.h"

namespace heddle::opt {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// The results of two evaluations: of the module with its states passed on, or of the original with
// a persistent random state.
std::vector<Literal> two_runs(const hlo::Module& module, const std::vector<Literal>& arguments) {
  std::vector<Literal> states = hlo::states_of(module), results;
  interp::RandomState random;
  interp::Options options;
  options.random = &random;
  for (int run = 0; run < 2; ++run) {
    std::vector<Literal> all = arguments;
    all.insert(all.end(), states.begin(), states.end());
    auto result = interp::evaluate(module, all, options);
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
    if (!result) return results;
    if (!states.empty()) {
      std::vector<Literal> elements(result->elements().begin(), result->elements().end());
      states.assign(elements.end() - std::ssize(states), elements.end());
      elements.resize(elements.size() - states.size());
      result = elements.size() == 1 ? elements[0] : Literal::tuple(std::move(elements));
    }
    results.push_back(std::move(*result));
  }
  return results;
}

// The same bits; for normal numbers the same except for functions in f64, which are rounded once
// more.
void expect_equal(const Literal& got, const Literal& want, const std::string& where) {
  ASSERT_EQ(got.shape().is_tuple(), want.shape().is_tuple()) << where;
  if (want.shape().is_tuple()) {
    ASSERT_EQ(got.elements().size(), want.elements().size()) << where;
    for (size_t i = 0; i < want.elements().size(); ++i)
      expect_equal(got.elements()[i], want.elements()[i], where);
    return;
  }
  EXPECT_TRUE(got == want) << where << got.get_f64(0) << " is not " << want.get_f64(0);
}

std::unique_ptr<hlo::Module> expect_interpreters(std::string_view text, std::string_view pipeline) {
  auto module = parse(text);
  const auto before = module->clone();
  const std::vector<Literal> arguments = interp::random_arguments(*before, 1);
  EXPECT_TRUE(run(*module, pipeline).changed);
  for (const auto& computation : module->computations())
    for (const Instr* instr : computation->instrs())
      EXPECT_FALSE(instr->is(Opcode::rng) || instr->is(Opcode::rng_get_and_update_state))
          << instr->name();
  const std::vector<Literal> want = two_runs(*before, arguments),
                             got = two_runs(*module, arguments);
  EXPECT_EQ(got.size(), 2u);
  for (size_t i = 0; i < want.size() && i < got.size(); ++i)
    expect_equal(got[i], want[i], fmt::format("run {}:\n{}", i, text));
  EXPECT_FALSE(want[0] == want[1]) << "nothing is drawn";
  return module;
}

// The pass alone, and after all the rest of a compilation.
void check(std::string_view text) {
  expect_interpreters(text, "thread_random_state");
  for (const Level level : {Level::O0, Level::O1, Level::O2})
    expect_interpreters(text, pipeline_for(level));
}

constexpr std::string_view kBounds = "lo = f32[] constant(-1)\nhi = f32[] constant(3)\n";

TEST(ThreadRandomState, OneMoreInputAndOutput) {
  auto module = parse(
      "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
      "ENTRY e { x = pred[2] parameter(0) lo = pred[] constant(false)\n"
      "hi = pred[] constant(true) ROOT r = pred[2] rng(lo, hi), distribution=rng_uniform }");
  run(*module, "thread_random_state");
  const std::string text = hlo::to_string(*module);
  EXPECT_THAT(text, HasSubstr("input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, "
                              "may-alias) }"));
  EXPECT_THAT(text, HasSubstr("heddle_states={0 11400714819323198485 0}"));
  EXPECT_THAT(text, HasSubstr("random_state = u64[3] parameter(1)"));
  // The printed text is parsed again.
  const auto again = parse(text);
  EXPECT_EQ(hlo::to_string(*again), text);
  EXPECT_THAT(hlo::states_of(*again), ElementsAre(hlo::states_of(*module)[0]));
  EXPECT_THAT(expression(*module),
              HasSubstr("add(reshape[2](iota[2]{0}()), broadcast[2]{}(add(reshape[](slice[1]{0:1}"
                        "(p1)), 11400714819323198485)))"));
  EXPECT_THAT(
      expression(*module),
      EndsWith(", add(p1, concatenate[3]{0}(reshape[1](2), reshape[1](0), reshape[1](0))))"));
}

TEST(ThreadRandomState, WithoutDrawsNothing) {
  expect_unchanged("x = f32[4] parameter(0) ROOT r = f32[4] negate(x)", "thread_random_state");
}

TEST(ThreadRandomState, TheNumbersOfEveryType) {
  for (const char* type : {"f16", "bf16", "f32", "f64"})
    for (const char* distribution : {"rng_uniform", "rng_normal"})
      check(
          fmt::format("ENTRY e {{ a = {0}[] constant(1) b = {0}[] constant(1.5)\n"
                      "ROOT r = {0}[5,7] rng(a, b), distribution={1} }}",
                      type, distribution));
  for (const char* type : {"s8", "u8", "s16", "u32", "s32", "s64", "u64"})
    check(
        fmt::format("ENTRY e {{ a = {0}[] constant(3) b = {0}[] constant(90)\n"
                    "ROOT r = {0}[5,7] rng(a, b), distribution=rng_uniform }}",
                    type));
  check(
      "ENTRY e { a = s8[] constant(-100) b = s8[] constant(100)\n"
      "ROOT r = s8[64] rng(a, b), distribution=rng_uniform }");
  check(
      "ENTRY e { a = pred[] constant(false) b = pred[] constant(true)\n"
      "ROOT r = pred[64] rng(a, b), distribution=rng_uniform }");
  check(
      "ENTRY e { a = f32[] constant(0) b = f32[] constant(1) x = f32[<=4] parameter(0)\n"
      "r = f32[<=4] rng(a, b), distribution=rng_uniform ROOT s = f32[<=4] add(x, r) }");
  check(
      "ENTRY e { a = f32[] constant(0) b = f32[] constant(1)\n"
      "ROOT r = f32[] rng(a, b), distribution=rng_uniform }");
}

// Integers with an empty range take no numbers; floats may round to the excluded bound.
TEST(ThreadRandomState, BoundsAsTheInterpreterHasThem) {
  check(
      "ENTRY e { a = s32[] parameter(0) b = s32[] parameter(1)\n"
      "same = s32[3] rng(a, a), distribution=rng_uniform\n"
      "r = s32[3] rng(a, b), distribution=rng_uniform\n"
      "ROOT t = (s32[3], s32[3]) tuple(same, r) }");
  check(
      "ENTRY e { a = f16[] constant(1) b = f16[] constant(1.002)\n"
      "ROOT r = f16[100] rng(a, b), distribution=rng_uniform }");
}

TEST(ThreadRandomState, DrawsFollowOneAnother) {
  check(
      fmt::format("ENTRY e {{ {}\n"
                  "dead = f32[5] rng(lo, hi), distribution=rng_uniform\n"
                  "a = f32[4] rng(lo, hi), distribution=rng_uniform\n"
                  "w = u64[2] rng-get-and-update-state(), delta=5\n"
                  "b = f32[4] rng(lo, hi), distribution=rng_uniform\n"
                  "v = u64[3] rng-get-and-update-state(), delta=9223372036854775807\n"
                  "u = u64[1] rng-get-and-update-state(), delta=9223372036854775807\n"
                  "t = u32[2] rng-get-and-update-state(), delta=1\n"
                  "ROOT all = (f32[4], u64[2], f32[4], u64[3], u64[1], u32[2])\n"
                  "  tuple(b, w, a, v, u, t) }}",
                  kBounds));
}

TEST(ThreadRandomState, ThroughWhatIsCalled) {
  check(
      fmt::format("inner {{ {0} ROOT r = f32[4] rng(lo, hi), distribution=rng_uniform }}\n"
                  "ENTRY e {{ {0} nobody = ((), f32[4], u32[]) async-start(), calls=inner\n"
                  "  ROOT r = f32[4] rng(lo, hi), distribution=rng_uniform }}",
                  kBounds));
  check(
      fmt::format("inner {{ {0} ROOT r = f32[4] rng(lo, hi), distribution=rng_uniform }}\n"
                  "outer {{ x = f32[4] parameter(0) y = f32[4] call(), to_apply=inner\n"
                  "  z = f32[4] call(), to_apply=inner d = f32[4] divide(y, z)\n"
                  "  ROOT t = (f32[4], f32[4]) tuple(d, x) }}\n"
                  "ENTRY e {{ x = f32[4] parameter(0) {0}\n"
                  "  a = (f32[4], f32[4]) fusion(x), kind=kLoop, calls=outer\n"
                  "  s = ((), f32[4], u32[]) async-start(), calls=inner\n"
                  "  between = f32[4] rng(lo, hi), distribution=rng_uniform\n"
                  "  u = ((), f32[4], u32[]) async-update(s) d = f32[4] async-done(u)\n"
                  "  b = (f32[4], f32[4]) call(x), to_apply=outer\n"
                  "  ROOT t = ((f32[4], f32[4]), f32[4], f32[4], (f32[4], f32[4]))\n"
                  "    tuple(b, between, d, a) }}",
                  kBounds));
}

constexpr std::string_view kBranches = R"(
draws { x = f32[4] parameter(0) lo = f32[] constant(0) hi = f32[] constant(1)
  r = f32[4] rng(lo, hi), distribution=rng_uniform ROOT y = f32[4] add(x, r) }
rests { p = (f32[4], f32[]) parameter(0) ROOT x = f32[4] get-tuple-element(p), index=0 }
ENTRY e { x = f32[4] parameter(0) lo = f32[] constant(0) hi = f32[] constant(1)
  pair = (f32[4], f32[]) tuple(x, hi) which = pred[] constant(%s)
  a = f32[4] conditional(which, x, pair), true_computation=draws, false_computation=rests
  one = s32[] constant(1)
  b = f32[4] conditional(one, pair, x, x), branch_computations={rests, draws, draws}
  r = f32[4] rng(lo, hi), distribution=rng_uniform
  ROOT t = (f32[4], f32[4], f32[4]) tuple(r, a, b) }
)";

TEST(ThreadRandomState, ThroughBranches) {
  for (const char* which : {"true", "false"}) {
    std::string text(kBranches);
    text.replace(text.find("%s"), 2, which);
    check(text);
  }
}

// Three trips; the condition draws if `condition` does.
std::string loop(std::string_view condition) {
  return fmt::format(R"(
step {{ s = (s32[], f32[3,4], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  all = f32[3,4] get-tuple-element(s), index=1 kept = f32[4] get-tuple-element(s), index=2
  lo = f32[] constant(0) hi = f32[] constant(1) one = s32[] constant(1) zero = s32[] constant(0)
  r = f32[1,4] rng(lo, hi), distribution=rng_uniform
  put = f32[3,4] dynamic-update-slice(all, r, i, zero) n = s32[] add(i, one)
  ROOT t = (s32[], f32[3,4], f32[4]) tuple(n, put, kept) }}
more {{ s = (s32[], f32[3,4], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  lo = f32[] constant(0) hi = f32[] constant(1) n = s32[] constant(3) {}
  ROOT c = pred[] compare(i, n), direction=LT }}
ENTRY e {{ x = f32[4] parameter(0) zero = s32[] constant(0) none = f32[] constant(0)
  lo = f32[] constant(0) hi = f32[] constant(1)
  init = f32[3,4] broadcast(none), dimensions={{}}
  before = f32[4] rng(lo, hi), distribution=rng_uniform
  start = (s32[], f32[3,4], f32[4]) tuple(zero, init, x)
  end = (s32[], f32[3,4], f32[4]) while(start), condition=more, body=step
  behind = f32[4] rng(lo, hi), distribution=rng_uniform
  all = f32[3,4] get-tuple-element(end), index=1
  ROOT t = (f32[4], f32[3,4], f32[4], (s32[], f32[3,4], f32[4])) tuple(before, all, behind, end) }}
)",
                     condition);
}

TEST(ThreadRandomState, ThroughLoops) {
  check(loop(""));
  check(loop("r = f32[2] rng(lo, hi), distribution=rng_uniform"));
}

// A state that is not a tuple.
TEST(ThreadRandomState, ThroughLoopsOverOneArray) {
  check(R"(
step { x = f32[] parameter(0) lo = f32[] constant(1) hi = f32[] constant(2)
  r = f32[] rng(lo, hi), distribution=rng_uniform ROOT y = f32[] add(x, r) }
more { x = f32[] parameter(0) n = f32[] constant(7) ROOT c = pred[] compare(x, n), direction=LT }
ENTRY e { zero = f32[] constant(0)
  ROOT end = f32[] while(zero), condition=more, body=step }
)");
}

TEST(ThreadRandomState, ScalarBodiesAreTheUsers) {
  auto module = parse(
      "body { a = f32[] parameter(0) b = f32[] constant(1)\n"
      "  ROOT r = f32[] rng(a, b), distribution=rng_uniform }\n"
      "ENTRY e { x = f32[4] parameter(0) ROOT m = f32[4] map(x), dimensions={0}, to_apply=body }");
  const Result<bool> result = thread_random_state(*module, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "%m (map): the computation %body that it applies draws random numbers, which only "
            "calls, branches and loops may; draw an array of them before it");
}

// Calls that the interpreter does not run either, and results read too early: errors, not aborts.
TEST(ThreadRandomState, WhatIsNoCallIsTheUsers) {
  const std::string body =
      "body { a = f32[4] parameter(0) lo = f32[] constant(0) hi = f32[] constant(1)\n"
      "  r = f32[4] rng(lo, hi), distribution=rng_uniform ROOT s = f32[4] add(a, r) }\n";
  const std::pair<std::string, std::string> cases[] = {
      {"ENTRY e { x = f32[4] parameter(0)\n"
       "  ROOT c = f32[2] custom-call(x), custom_call_target=\"Sharding\",\n"
       "    called_computations={body} }",
       "%c (custom-call): the computation %body"},
      {"ENTRY e { x = f32[4] parameter(0)\n"
       "  s = ((f32[4]), f32[4], u32[]) async-start(x), calls=body\n"
       "  d = f32[4] async-done(s) early = f32[4] get-tuple-element(s), index=1\n"
       "  ROOT r = f32[4] add(d, early) }",
       "%early: the computation of %s draws"},
      {"ENTRY e { x = f32[4] parameter(0)\n"
       "  ROOT s = ((f32[4]), f32[4], u32[]) async-start(x), calls=body }",
       "%s: the computation of %s draws"}};
  for (const auto& [entry, message] : cases) {
    auto module = parse(body + entry);
    const Result<bool> result = thread_random_state(*module, {});
    ASSERT_FALSE(result) << entry;
    EXPECT_EQ(result.error().kind, ErrorKind::user);
    EXPECT_THAT(result.error().message, HasSubstr(message));
  }
  for (const char* shape : {"f32[?]", "f32[549755813888]"}) {
    auto endless =
        parse(fmt::format("ENTRY e {{ lo = f32[] constant(0) hi = f32[] constant(1)\n"
                          "  ROOT r = {} rng(lo, hi), distribution=rng_uniform }}",
                          shape));
    EXPECT_THAT(thread_random_state(*endless, {}).error().message,
                HasSubstr(fmt::format("%r (rng): it draws {}", shape)));
  }
}

}  // namespace
}  // namespace heddle::opt
