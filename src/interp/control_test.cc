#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

TEST(Control, WhileCountsAndUpdatesInPlace) {
  const std::string text = R"(
    condition { s = (s32[], s32[5]) parameter(0)
                i = s32[] get-tuple-element(s), index=0
                n = s32[] constant(5)
                ROOT r = pred[] compare(i, n), direction=LT }
    body { s = (s32[], s32[5]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           x = s32[5] get-tuple-element(s), index=1
           one = s32[] constant(1)
           next = s32[] add(i, one)
           square = s32[] multiply(i, i)
           update = s32[1] reshape(square)
           y = s32[5] dynamic-update-slice(x, update, i)
           ROOT t = (s32[], s32[5]) tuple(next, y) }
    ENTRY e { zero = s32[] constant(0)
              x = s32[5] broadcast(zero), dimensions={}
              init = (s32[], s32[5]) tuple(zero, x)
              loop = (s32[], s32[5]) while(init), condition=condition, body=body
              y = s32[5] get-tuple-element(loop), index=1
              ROOT r = (s32[5], s32[5]) tuple(x, y) })";
  EXPECT_EQ(run(text), "({0, 0, 0, 0, 0}, {0, 1, 4, 9, 16})");
}

TEST(Control, AnEndlessLoopStops) {
  const std::string text = R"(
    condition { s = s32[] parameter(0)
                ROOT r = pred[] constant(true) }
    body { ROOT s = s32[] parameter(0) }
    ENTRY e { zero = s32[] constant(0)
              ROOT loop = s32[] while(zero), condition=condition, body=body })";
  EXPECT_EQ(run(text, {.max_steps = 1000}).substr(0, 5), "error");
}

TEST(Control, ConditionalOfBothForms) {
  auto by_pred = [](const std::string& p) {
    return run(R"(
      yes { x = s32[] parameter(0)
            one = s32[] constant(1)
            ROOT r = s32[] add(x, one) }
      no { x = s32[] parameter(0)
           ROOT r = s32[] negate(x) }
      ENTRY e { p = pred[] constant()" +
               p + R"()
                x = s32[] constant(5)
                y = s32[] constant(7)
                ROOT r = s32[] conditional(p, x, y), true_computation=yes, false_computation=no })");
  };
  EXPECT_EQ(by_pred("true"), "6");
  EXPECT_EQ(by_pred("false"), "-7");
  auto by_index = [](const std::string& i) {
    return run(R"(
      a { ROOT x = s32[] parameter(0) }
      b { x = s32[] parameter(0)
          ROOT r = s32[] add(x, x) }
      c { x = s32[] parameter(0)
          ROOT r = s32[] negate(x) }
      ENTRY e { i = s32[] constant()" +
               i + R"()
                x = s32[] constant(5)
                ROOT r = s32[] conditional(i, x, x, x), branch_computations={a, b, c} })");
  };
  EXPECT_EQ(by_index("0"), "5");
  EXPECT_EQ(by_index("1"), "10");
  EXPECT_EQ(by_index("2"), "-5");
  EXPECT_EQ(by_index("-1"), "-5");
  EXPECT_EQ(by_index("99"), "-5");
}

TEST(Control, CallFusionAndTuples) {
  EXPECT_EQ(run(R"(
    f { a = s32[2] parameter(0)
        b = s32[2] parameter(1)
        s = s32[2] add(a, b)
        ROOT t = (s32[2], s32[2]) tuple(s, a) }
    ENTRY e { x = s32[2] constant({1, 2})
              c = (s32[2], s32[2]) call(x, x), to_apply=f
              g = s32[2] get-tuple-element(c), index=0
              u = (s32[2], s32[2]) fusion(g, x), kind=kCustom, calls=f
              o = (s32[2], s32[2]) opt-barrier(u)
              ROOT t = ((s32[2], s32[2]), s32[2]) tuple(o, g) })"),
            "(({3, 6}, {2, 4}), {2, 4})");
}

TEST(Control, TheSameOperandTwiceAndTheRootItself) {
  EXPECT_EQ(run(R"(
    x = s32[2] constant({1, 2})
    y = s32[2] negate(x)
    z = s32[2] multiply(y, y)
    t = (s32[2], s32[2]) tuple(z, z)
    a = s32[2] get-tuple-element(t), index=0
    b = s32[2] get-tuple-element(t), index=0
    c = s32[2] add(a, b)
    ROOT r = ((s32[2], s32[2]), s32[2]) tuple(t, c))"),
            "(({1, 4}, {1, 4}), {2, 8})");
}

TEST(Control, StartsAndDones) {
  EXPECT_EQ(run(R"(
    f { a = s32[2] parameter(0)
        ROOT r = s32[2] negate(a) }
    ENTRY e { x = s32[2] constant({1, 2})
              s = ((s32[2]), s32[2], u32[]) async-start(x), calls=f
              u = ((s32[2]), s32[2], u32[]) async-update(s)
              d = s32[2] async-done(u)
              c = (s32[2], s32[2], u32[]) copy-start(d)
              e = s32[2] copy-done(c)
              token = token[] after-all()
              ROOT r = s32[2] add-dependency(e, token) })"),
            "{-1, -2}");
}

TEST(Control, CallsNestWithinBounds) {
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text += "f" + std::to_string(i) + " { x = s32[] parameter(0)\n ROOT r = s32[] " +
            (i == 0 ? std::string("negate(x)") : "call(x), to_apply=f" + std::to_string(i - 1)) +
            " }\n";
  }
  auto entry = [&](int depth) {
    return run(text + "ENTRY e { x = s32[] constant(3)\n ROOT r = s32[] call(x), to_apply=f" +
               std::to_string(depth) + " }");
  };
  EXPECT_EQ(entry(300), "-3");
  EXPECT_EQ(entry(599).substr(0, 5), "error");
}

}  // namespace
}  // namespace heddle::interp
