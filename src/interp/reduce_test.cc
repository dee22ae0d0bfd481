#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

// A computation named f of two scalars.
std::string combine(const std::string& type, const std::string& op) {
  return "f { a = " + type + "[] parameter(0)\n b = " + type +
         "[] parameter(1)\n ROOT r = " + type + "[] " + op + "(a, b) }\n";
}

TEST(Reduce, AnyDimensions) {
  const std::string head = combine("s32", "add") + R"(ENTRY e {
    x = s32[2,3,2] constant({{{1,2},{3,4},{5,6}},{{7,8},{9,10},{11,12}}})
    zero = s32[] constant(100)
    ROOT r = )";
  EXPECT_EQ(run(head + "s32[2,2] reduce(x, zero), dimensions={1}, to_apply=f }"),
            "{ {109, 112}, {127, 130} }");
  EXPECT_EQ(run(head + "s32[3] reduce(x, zero), dimensions={0,2}, to_apply=f }"),
            "{118, 126, 134}");
  EXPECT_EQ(run(head + "s32[] reduce(x, zero), dimensions={0,1,2}, to_apply=f }"), "178");
  EXPECT_EQ(run(head + "s32[2,3,2] reduce(x, zero), dimensions={}, to_apply=f }").substr(0, 9),
            "{ { {101,");
}

TEST(Reduce, EmptyGivesTheStart) {
  EXPECT_EQ(run(combine("f32", "maximum") + R"(ENTRY e {
    x = f32[2,0] constant({{},{}})
    low = f32[] constant(-inf)
    ROOT r = f32[2] reduce(x, low), dimensions={1}, to_apply=f })"),
            "{-inf, -inf}");
}

TEST(Reduce, IntegersWrapAndPredsCombine) {
  EXPECT_EQ(run(combine("s8", "multiply") + R"(ENTRY e {
    x = s8[3] constant({100, 3, 2})
    one = s8[] constant(1)
    ROOT r = s8[] reduce(x, one), dimensions={0}, to_apply=f })"),
            "88");
  EXPECT_EQ(run(combine("pred", "or") + R"(ENTRY e {
    x = pred[2,2] constant({{0,0},{0,1}})
    no = pred[] constant(false)
    ROOT r = pred[2] reduce(x, no), dimensions={1}, to_apply=f })"),
            "{0, 1}");
  EXPECT_EQ(run(combine("u8", "minimum") + R"(ENTRY e {
    x = u8[3] constant({200, 100, 150})
    high = u8[] constant(255)
    ROOT r = u8[] reduce(x, high), dimensions={0}, to_apply=f })"),
            "100");
}

TEST(Reduce, NarrowFloatsAccumulateInF32) {
  // Rounded at each step, a bf16 sum of ones stops at 256.
  EXPECT_EQ(run(combine("bf16", "add") + R"(ENTRY e {
    one = bf16[] constant(1)
    x = bf16[1000] broadcast(one), dimensions={}
    zero = bf16[] constant(0)
    ROOT r = bf16[] reduce(x, zero), dimensions={0}, to_apply=f })"),
            "1000");
  // An f32 sum stops at 2^24, unless it is widened.
  const std::string f32 = combine("f32", "add") + R"(ENTRY e {
    one = f32[] constant(1)
    x = f32[3] broadcast(one), dimensions={}
    start = f32[] constant(16777216)
    ROOT r = f32[] reduce(x, start), dimensions={0}, to_apply=f })";
  EXPECT_EQ(run(f32), "16777216");
  EXPECT_EQ(run(f32, {.widen = true}), "16777220");
}

TEST(Reduce, VariadicArgmax) {
  EXPECT_EQ(run(R"(
    f { v = f32[] parameter(0)
        i = s32[] parameter(1)
        w = f32[] parameter(2)
        j = s32[] parameter(3)
        less = pred[] compare(v, w), direction=LT
        value = f32[] select(less, w, v)
        place = s32[] select(less, j, i)
        ROOT t = (f32[], s32[]) tuple(value, place) }
    ENTRY e { x = f32[2,4] constant({{1, 5, 5, 2}, {9, 0, 3, 1}})
              i = s32[2,4] iota(), iota_dimension=1
              low = f32[] constant(-inf)
              zero = s32[] constant(0)
              ROOT r = (f32[2], s32[2]) reduce(x, i, low, zero), dimensions={1}, to_apply=f })"),
            "({5, 9}, {1, 0})");
}

TEST(Reduce, OrderOfOtherBodiesIsThatOfTheOperand) {
  // acc * 10 + x spells the elements out.
  EXPECT_EQ(run(R"(
    f { a = s32[] parameter(0)
        b = s32[] parameter(1)
        ten = s32[] constant(10)
        m = s32[] multiply(a, ten)
        ROOT r = s32[] add(m, b) }
    ENTRY e { x = s32[2,3] constant({{1,2,3},{4,5,6}})
              zero = s32[] constant(0)
              rows = s32[2] reduce(x, zero), dimensions={1}, to_apply=f
              all = s32[] reduce(x, zero), dimensions={0,1}, to_apply=f
              ROOT t = (s32[2], s32[]) tuple(rows, all) })"),
            "({123, 456}, 123456)");
}

TEST(ReduceWindow, StridesPaddingAndDilations) {
  auto window = [](const std::string& result, const std::string& attrs) {
    return run(combine("s32", "add") + "ENTRY e { x = s32[6] constant({1,2,3,4,5,6})\n" +
               "zero = s32[] constant(0)\n ROOT r = " + result +
               " reduce-window(x, zero), to_apply=f, window={" + attrs + "} }");
  };
  EXPECT_EQ(window("s32[3]", "size=2 stride=2"), "{3, 7, 11}");
  EXPECT_EQ(window("s32[4]", "size=2 stride=2 pad=1_1"), "{1, 5, 9, 6}");
  EXPECT_EQ(window("s32[2]", "size=3 rhs_dilate=2"), "{9, 12}");
  EXPECT_EQ(window("s32[10]", "size=2 lhs_dilate=2"), "{1, 2, 2, 3, 3, 4, 4, 5, 5, 6}");
  EXPECT_EQ(window("s32[6]", "size=6 pad=5_0"), "{1, 3, 6, 10, 15, 21}");
}

TEST(ReduceWindow, TwoDimensionsAndVariadic) {
  EXPECT_EQ(run(combine("f32", "maximum") + R"(ENTRY e {
    x = f32[1,3,3] constant({{{1,2,3},{4,9,6},{7,8,5}}})
    low = f32[] constant(-inf)
    ROOT r = f32[1,2,2] reduce-window(x, low), window={size=1x2x2}, to_apply=f })"),
            "{ { {9, 9}, {9, 9} } }");
  EXPECT_EQ(run(R"(
    f { a = s32[] parameter(0)
        b = s32[] parameter(1)
        c = s32[] parameter(2)
        d = s32[] parameter(3)
        s = s32[] add(a, c)
        m = s32[] multiply(b, d)
        ROOT t = (s32[], s32[]) tuple(s, m) }
    ENTRY e { x = s32[3] constant({1,2,3})
              zero = s32[] constant(0)
              one = s32[] constant(1)
              ROOT r = (s32[2], s32[2]) reduce-window(x, x, zero, one), window={size=2},
                to_apply=f })"),
            "({3, 5}, {2, 6})");
}

TEST(SelectAndScatter, GradientOfMaxPooling) {
  EXPECT_EQ(run(R"(
    ge { a = f32[] parameter(0)
         b = f32[] parameter(1)
         ROOT r = pred[] compare(a, b), direction=GE }
    add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT r = f32[] add(a, b) }
    ENTRY e {
      x = f32[4,5] constant({{7,2,5,3,8},{3,8,9,3,4},{1,5,7,5,6},{0,6,2,10,2}})
      source = f32[2,2] constant({{2,6},{3,1}})
      zero = f32[] constant(0)
      ROOT r = f32[4,5] select-and-scatter(x, source, zero), window={size=2x3 stride=2x2},
        select=ge, scatter=add })"),
            "{ {0, 0, 0, 0, 0}, {0, 0, 8, 0, 0}, {0, 0, 3, 0, 0}, {0, 0, 0, 1, 0} }");
}

TEST(Scan, ForwardsAndBackwards) {
  auto scan = [](const std::string& attrs) {
    return run(R"(
      f { x = s32[] parameter(0)
          c = s32[] parameter(1)
          s = s32[] add(x, c)
          ROOT t = (s32[], s32[]) tuple(s, s) }
      ENTRY e { x = s32[4] constant({1, 2, 3, 4})
                init = s32[] constant(10)
                ROOT r = (s32[4], s32[]) scan(x, init), dimensions={0}, num_carries=1, to_apply=f)" +
               attrs + "}");
  };
  EXPECT_EQ(scan(""), "({11, 13, 16, 20}, 20)");
  EXPECT_EQ(scan(", is_reverse=true"), "({20, 19, 17, 14}, 20)");
}

}  // namespace
}  // namespace heddle::interp
