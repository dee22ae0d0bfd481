#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {

#define P "p = pred[4] parameter(0)\n"
#define X_S "x = s32[4] parameter(0)\n"
#define Y_S "y = s32[4] parameter(1)\n"
#define X_F "x = f32[4] parameter(0)\n"
#define Y_F "y = f32[4] parameter(1)\n"
#define SPLAT(type, number) \
  "n = " type "[] constant(" number ")\n c = " type "[4] broadcast(n), dimensions={}\n"
#define TRUTH                                                             \
  "t1 = pred[] constant(true) t = pred[4] broadcast(t1), dimensions={}\n" \
  "f1 = pred[] constant(false) f = pred[4] broadcast(f1), dimensions={}\n"

const std::vector<RuleCase>& logic_cases() {
  static const std::vector<RuleCase> kCases = {
      {"not_not", P "a = not(p) ROOT r = not(a)", "p0"},
      {"not_not", P "ROOT r = not(p)", ""},

      {"not_compare", X_S Y_S "a = compare(x, y), direction=LT ROOT r = not(a)",
       "compare.GE(p0, p1)"},
      {"not_compare", X_S Y_S "a = compare(x, y), direction=LE ROOT r = not(a)",
       "compare.GT(p0, p1)"},
      {"not_compare", X_S Y_S "a = compare(x, y), direction=GT ROOT r = not(a)",
       "compare.LE(p0, p1)"},
      {"not_compare", X_S Y_S "a = compare(x, y), direction=GE ROOT r = not(a)",
       "compare.LT(p0, p1)"},
      {"not_compare", X_F Y_F "a = compare(x, y), direction=NE ROOT r = not(a)",
       "compare.EQ(p0, p1)"},
      {"not_compare", X_F Y_F "a = compare(x, y), direction=EQ ROOT r = not(a)",
       "compare.NE(p0, p1)"},
      {"not_compare", X_F Y_F "a = compare(x, y), direction=GT, type=TOTALORDER ROOT r = not(a)",
       "compare.LE(p0, p1)"},
      // NaN is neither less nor not less.
      {"not_compare", X_F Y_F "a = compare(x, y), direction=LT ROOT r = not(a)", ""},

      {"select_known", X_F Y_F TRUTH "ROOT r = select(t, x, y)", "p0"},
      {"select_known", X_F Y_F "f = pred[] constant(false) ROOT r = select(f, x, y)", "p1"},
      {"select_known", "p = pred[4] parameter(2)" X_F Y_F "ROOT r = select(p, x, y)", ""},

      {"select_same", "p = pred[4] parameter(1)" X_F "ROOT r = select(p, x, x)", "p0"},
      {"select_same", "p = pred[4] parameter(2)" X_F Y_F "ROOT r = select(p, x, y)", ""},

      {"select_not", "p = pred[4] parameter(2)" X_F Y_F "n = not(p) ROOT r = select(n, x, y)",
       "select(p2, p1, p0)"},
      {"select_not", "p = pred[4] parameter(2)" X_F Y_F "ROOT r = select(p, x, y)", ""},

      {"select_nested",
       "p = pred[4] parameter(2)" X_F Y_F "a = select(p, x, y) ROOT r = select(p, a, x)",
       "select(p2, p0, p0)"},
      {"select_nested",
       "p = pred[4] parameter(2)" X_F Y_F "a = select(p, x, y) ROOT r = select(p, x, a)",
       "select(p2, p0, p1)"},
      {"select_nested",
       "p = pred[4] parameter(2) q = pred[4] parameter(3)" X_F Y_F
       "a = select(p, x, y) ROOT r = select(q, a, x)",
       ""},

      {"select_predicates", P TRUTH "ROOT r = select(p, t, f)", "p0"},
      {"select_predicates", P TRUTH "ROOT r = select(p, f, t)", "not(p0)"},
      {"select_predicates", "p = pred[] parameter(0)" TRUTH "ROOT r = select(p, t, f)", ""},
      {"select_predicates", P TRUTH "ROOT r = select(p, t, t)", ""},

      {"compare_self", X_S "ROOT r = compare(x, x), direction=GE", "broadcast[4]{}(true)"},
      {"compare_self", X_S "ROOT r = compare(x, x), direction=NE", "broadcast[4]{}(false)"},
      {"compare_self", X_F "ROOT r = compare(x, x), direction=EQ", ""},

      {"compare_constant_right", X_S SPLAT("s32", "3") "ROOT r = compare(c, x), direction=LT",
       "compare.GT(p0, broadcast[4]{}(3))"},
      {"compare_constant_right", X_S SPLAT("s32", "3") "ROOT r = compare(x, c), direction=LT", ""},

      {"compare_pred", P TRUTH "ROOT r = compare(p, t), direction=EQ", "p0"},
      {"compare_pred", P TRUTH "ROOT r = compare(p, f), direction=EQ", "not(p0)"},
      {"compare_pred", P TRUTH "ROOT r = compare(p, t), direction=GE", ""},

      {"compare_converted_pred",
       P SPLAT("s32", "0") "x = s32[4] convert(p) ROOT r = compare(x, c), direction=NE", "p0"},
      {"compare_converted_pred",
       P SPLAT("f32", "1") "x = f32[4] convert(p) ROOT r = compare(x, c), direction=NE", "not(p0)"},
      {"compare_converted_pred",
       P SPLAT("s32", "2") "x = s32[4] convert(p) ROOT r = compare(x, c), direction=NE", ""},
      {"compare_converted_pred",
       P SPLAT("s32", "0") "x = s32[4] convert(p) ROOT r = compare(x, c), direction=GT", ""},

      {"compare_unsigned_zero",
       "x = u8[4] parameter(0)" SPLAT("u8", "0") "ROOT r = compare(x, c), direction=GE",
       "broadcast[4]{}(true)"},
      {"compare_unsigned_zero",
       "x = u8[4] parameter(0)" SPLAT("u8", "0") "ROOT r = compare(x, c), direction=GT", ""},
      {"compare_unsigned_zero", X_S SPLAT("s32", "0") "ROOT r = compare(x, c), direction=GE", ""},

      {"compare_total_order", X_F Y_F "ROOT r = compare(x, y), direction=LT, type=TOTALORDER",
       "compare.LT(xor(bitcast-convert.s32(p0), shift-right-logical(shift-right-arithmetic("
       "bitcast-convert.s32(p0), broadcast[4]{}(31)), broadcast[4]{}(1))), xor("
       "bitcast-convert.s32(p1), shift-right-logical(shift-right-arithmetic("
       "bitcast-convert.s32(p1), broadcast[4]{}(31)), broadcast[4]{}(1))))"},
      {"compare_total_order", X_F Y_F "ROOT r = compare(x, y), direction=LT", ""},
      {"compare_total_order",
       "x = f8e5m2[4] parameter(0) ROOT r = compare(x, x), direction=LT, type=TOTALORDER", ""},
  };
  return kCases;
}

TEST(Rules, Logic) { check_rule_cases(logic_cases()); }

const std::vector<RuleCase>& convert_cases() {
  static const std::vector<RuleCase> kCases = {
      {"convert_same", X_F "ROOT r = f32[4] convert(x)", "p0"},
      {"convert_same", X_F "ROOT r = f16[4] convert(x)", ""},

      {"convert_convert",
       "x = bf16[4] parameter(0) a = f32[4] convert(x) ROOT r = bf16[4] convert(a)", "p0"},
      {"convert_convert",
       "x = f16[4] parameter(0) a = f32[4] convert(x) ROOT r = bf16[4] convert(a)",
       "convert.bf16(p0)"},
      {"convert_convert", "x = s8[4] parameter(0) a = s32[4] convert(x) ROOT r = u8[4] convert(a)",
       "convert.u8(p0)"},
      {"convert_convert", "x = u8[4] parameter(0) a = f32[4] convert(x) ROOT r = s32[4] convert(a)",
       "convert.s32(p0)"},
      // -1 clamps to 0 from a float, wraps to 255 from an integer.
      {"convert_convert", "x = s8[4] parameter(0) a = f32[4] convert(x) ROOT r = u8[4] convert(a)",
       ""},
      {"convert_convert", X_F "a = f16[4] convert(x) ROOT r = f32[4] convert(a)", ""},
      {"convert_convert", X_S "a = f32[4] convert(x) ROOT r = s32[4] convert(a)", ""},
      {"convert_convert", X_F "a = s32[4] convert(x) ROOT r = f32[4] convert(a)", ""},

      {"convert_pred_compare", X_S "ROOT r = pred[4] convert(x)",
       "compare.NE(p0, broadcast[4]{}(0))"},
      {"convert_pred_compare", X_F "ROOT r = pred[4] convert(x)",
       "compare.NE(p0, broadcast[4]{}(0))"},
      {"convert_pred_compare", P "ROOT r = s32[4] convert(p)", ""},

      {"bitcast_convert_same",
       X_F "a = s32[4] bitcast-convert(x) ROOT r = u32[4] bitcast-convert(a)",
       "bitcast-convert.u32(p0)"},
      {"bitcast_convert_same", X_F "ROOT r = f32[4] bitcast-convert(x)", "p0"},
      {"bitcast_convert_same",
       X_F "a = s8[4,4] bitcast-convert(x) ROOT r = u32[4] bitcast-convert(a)", ""},

      {"reduce_precision_wide",
       X_F "ROOT r = f32[4] reduce-precision(x), exponent_bits=8, "
           "mantissa_bits=23",
       "p0"},
      {"reduce_precision_wide",
       X_F "ROOT r = f32[4] reduce-precision(x), exponent_bits=8, "
           "mantissa_bits=7",
       ""},
  };
  return kCases;
}

TEST(Rules, Convert) { check_rule_cases(convert_cases()); }

}  // namespace heddle::opt
