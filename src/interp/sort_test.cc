#include "interp/run_test_util.h"

namespace heddle::interp {
namespace {

std::string less(const std::string& attrs) {
  return "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
         "ROOT r = pred[] compare(a, b), " +
         attrs + " }\n";
}

// XLA writes a bitcast-convert of a scalar as a bitcast.
TEST(Sort, ComparesBitsOfFloats) {
  EXPECT_EQ(run("HloModule m less { a = f32[] parameter(0) b = f32[] parameter(1) "
                "c = s32[] bitcast(a) d = s32[] bitcast(b) "
                "ROOT l = pred[] compare(c, d), direction=LT } "
                "ENTRY e { x = f32[4] constant({3, -1, 1e-9, -2}) "
                "ROOT s = f32[4] sort(x), dimensions={0}, to_apply=less }"),
            "{-1, -2, 1e-09, 3}");
}

TEST(Sort, AlongAnyDimension) {
  const std::string x = "ENTRY e { x = f32[2,3] constant({{3, 1, 2},{0, 9, -1}})\n ROOT r = ";
  EXPECT_EQ(run(less("direction=LT") + x + "f32[2,3] sort(x), dimensions={1}, to_apply=less }"),
            "{ {1, 2, 3}, {-1, 0, 9} }");
  EXPECT_EQ(run(less("direction=GT") + x + "f32[2,3] sort(x), dimensions={0}, to_apply=less }"),
            "{ {3, 9, 2}, {0, 1, -1} }");
}

TEST(Sort, TotalOrderPutsNaNsAtTheEnds) {
  EXPECT_EQ(run(less("direction=LT, type=TOTALORDER") +
                "ENTRY e { x = f32[6] constant({nan, 0, -0, -nan, inf, -inf})\n"
                "ROOT r = f32[6] sort(x), dimensions={0}, to_apply=less }"),
            "{-nan, -inf, -0, 0, inf, nan}");
}

TEST(Sort, CarriesOtherOperandsAlongAndIsStable) {
  EXPECT_EQ(run(R"(
    less { a = s32[] parameter(0)
           b = s32[] parameter(1)
           c = s32[] parameter(2)
           d = s32[] parameter(3)
           ROOT r = pred[] compare(a, b), direction=LT }
    ENTRY e { x = s32[6] constant({2, 1, 2, 1, 2, 0})
              i = s32[6] iota(), iota_dimension=0
              ROOT r = (s32[6], s32[6]) sort(x, i), dimensions={0}, is_stable=true,
                to_apply=less })"),
            "({0, 1, 1, 2, 2, 2}, {5, 1, 3, 0, 2, 4})");
}

TEST(Sort, AComparatorThatIsNoOrderIsHarmless) {
  EXPECT_EQ(run(R"(
    yes { a = s32[] parameter(0)
          b = s32[] parameter(1)
          ROOT r = pred[] constant(true) }
    ENTRY e { x = s32[100] iota(), iota_dimension=0
              s = s32[100] sort(x), dimensions={0}, to_apply=yes
              zero = s32[] constant(0)
              ROOT r = s32[2] slice(s), slice={[0:2]} })"),
            "{99, 98}");
}

TEST(TopK, OrdersByValueThenPlace) {
  EXPECT_EQ(run_op("topk", "(f32[2,3], s32[2,3])", {"f32[2,4] {{1, 3, 3, 2},{-1, nan, 0, -nan}}"},
                   "k=3, largest=true"),
            "({ {3, 3, 2}, {nan, 0, -1} }, { {1, 2, 3}, {1, 2, 0} })");
  EXPECT_EQ(run_op("topk", "(s8[2], s32[2])", {"s8[4] {4, -4, 2, -4}"}, "k=2, largest=false"),
            "({-4, -4}, {1, 3})");
  EXPECT_EQ(run_op("custom-call", "(bf16[1], s32[1])", {"bf16[3] {1, 5, 2}"},
                   "custom_call_target=\"TopK\""),
            "({5}, {1})");
}

}  // namespace
}  // namespace heddle::interp
