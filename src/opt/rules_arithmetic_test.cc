#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {

// X: a parameter of a type; splat N: a broadcast number.
#define X_F "x = f32[4] parameter(0)\n"
#define Y_F "y = f32[4] parameter(1)\n"
#define X_S "x = s32[4] parameter(0)\n"
#define Y_S "y = s32[4] parameter(1)\n"
#define X_U "x = u8[4] parameter(0)\n"
#define SPLAT(type, number) \
  "n = " type "[] constant(" number ")\n c = " type "[4] broadcast(n), dimensions={}\n"

const std::vector<RuleCase>& arithmetic_cases() {
  static const std::vector<RuleCase> kCases = {
      {"add_zero", X_S SPLAT("s32", "0") "ROOT r = add(x, c)", "p0"},
      {"add_zero", X_S SPLAT("s32", "0") "ROOT r = add(c, x)", "p0"},
      {"add_zero", X_F SPLAT("f32", "-0") "ROOT r = add(x, c)", "p0"},
      {"add_zero", X_F SPLAT("f32", "0") "e = exponential(x) ROOT r = add(e, c)",
       "exponential(p0)"},
      // -0 + 0 is 0.
      {"add_zero", X_F SPLAT("f32", "0") "ROOT r = add(x, c)", ""},
      {"add_zero", X_S SPLAT("s32", "1") "ROOT r = add(x, c)", ""},
      {"add_zero", "x = c64[4] parameter(0)" SPLAT("c64", "(0,0)") "ROOT r = add(x, c)", ""},

      {"add_negate", X_F Y_F "n = negate(y) ROOT r = add(x, n)", "subtract(p0, p1)"},
      {"add_negate", X_F Y_F "n = negate(y) ROOT r = add(n, x)", "subtract(p0, p1)"},
      {"add_negate", X_F Y_F "n = abs(y) ROOT r = add(x, n)", ""},

      {"subtract_zero", X_F SPLAT("f32", "0") "ROOT r = subtract(x, c)", "p0"},
      {"subtract_zero", X_S SPLAT("s32", "0") "ROOT r = subtract(x, c)", "p0"},
      {"subtract_zero", X_F SPLAT("f32", "-0") "ROOT r = subtract(x, c)", ""},
      {"subtract_zero", X_F SPLAT("f32", "0") "ROOT r = subtract(c, x)", ""},

      {"subtract_self", X_S "ROOT r = subtract(x, x)", "broadcast[4]{}(0)"},
      {"subtract_self", X_F "ROOT r = subtract(x, x)", ""},
      {"subtract_self", X_S Y_S "ROOT r = subtract(x, y)", ""},

      {"subtract_negate", X_F Y_F "n = negate(y) ROOT r = subtract(x, n)", "add(p0, p1)"},
      {"subtract_negate", X_F Y_F "n = negate(x) ROOT r = subtract(n, y)", ""},

      {"multiply_one", X_F SPLAT("f32", "1") "ROOT r = multiply(x, c)", "p0"},
      {"multiply_one", X_F SPLAT("f32", "-1") "ROOT r = multiply(c, x)", "negate(p0)"},
      {"multiply_one", X_U SPLAT("u8", "1") "ROOT r = multiply(x, c)", "p0"},
      {"multiply_one", "x = c64[4] parameter(0)" SPLAT("c64", "(1,0)") "ROOT r = multiply(x, c)",
       ""},
      {"multiply_one", X_F SPLAT("f32", "1.5") "ROOT r = multiply(x, c)", ""},

      {"multiply_zero", X_S SPLAT("s32", "0") "ROOT r = multiply(x, c)", "broadcast[4]{}(0)"},
      {"multiply_zero", X_F SPLAT("f32", "0") "ROOT r = multiply(x, c)", ""},

      {"multiply_negates", X_F Y_F "a = negate(x) b = negate(y) ROOT r = multiply(a, b)",
       "multiply(p0, p1)"},
      {"multiply_negates", X_F Y_F "a = negate(x) ROOT r = multiply(a, y)", ""},

      {"divide_one", X_F SPLAT("f32", "1") "ROOT r = divide(x, c)", "p0"},
      {"divide_one", X_S SPLAT("s32", "1") "ROOT r = divide(x, c)", "p0"},
      {"divide_one", X_F SPLAT("f32", "1") "ROOT r = divide(c, x)", ""},

      {"divide_power_of_two", X_F SPLAT("f32", "4") "ROOT r = divide(x, c)",
       "multiply(p0, broadcast[4]{}(0.25))"},
      {"divide_power_of_two", X_F SPLAT("f32", "-0.5") "ROOT r = divide(x, c)",
       "multiply(p0, broadcast[4]{}(-2))"},
      {"divide_power_of_two", X_F SPLAT("f32", "3") "ROOT r = divide(x, c)", ""},
      {"divide_power_of_two", X_F SPLAT("f32", "0") "ROOT r = divide(x, c)", ""},
      {"divide_power_of_two", X_F SPLAT("f32", "1e-45") "ROOT r = divide(x, c)", ""},
      {"divide_power_of_two", X_S SPLAT("s32", "4") "ROOT r = divide(x, c)", ""},

      {"remainder_one", X_S SPLAT("s32", "1") "ROOT r = remainder(x, c)", "broadcast[4]{}(0)"},
      {"remainder_one", X_F SPLAT("f32", "1") "ROOT r = remainder(x, c)", ""},

      {"negate_negate", X_F "a = negate(x) ROOT r = negate(a)", "p0"},
      {"negate_negate", X_F "a = abs(x) ROOT r = negate(a)", ""},

      {"abs_abs", X_F "a = abs(x) ROOT r = abs(a)", "abs(p0)"},
      {"abs_abs", X_F "a = negate(x) ROOT r = abs(a)", "abs(p0)"},
      {"abs_abs", "x = c64[4] parameter(0) a = negate(x) ROOT r = abs(a)", ""},

      {"power_small", X_F SPLAT("f32", "1") "ROOT r = power(x, c)", "p0"},
      {"power_small", X_F SPLAT("f32", "2") "ROOT r = power(x, c)", "multiply(p0, p0)"},
      {"power_small", X_S SPLAT("s32", "2") "ROOT r = power(x, c)", "multiply(p0, p0)"},
      {"power_small", X_F SPLAT("f32", "-1") "ROOT r = power(x, c)",
       "divide(broadcast[4]{}(1), p0)"},
      {"power_small", X_F SPLAT("f32", "0") "ROOT r = power(x, c)", "broadcast[4]{}(1)"},
      {"power_small", X_F SPLAT("f32", "0.5") "ROOT r = power(x, c)", ""},
      {"power_small", X_F SPLAT("f32", "3") "ROOT r = power(x, c)", ""},

      {"idempotent", X_F "ROOT r = maximum(x, x)", "p0"},
      {"idempotent", X_S "ROOT r = and(x, x)", "p0"},
      {"idempotent", X_F "ROOT r = add(x, x)", ""},

      {"xor_self", X_S "ROOT r = xor(x, x)", "broadcast[4]{}(0)"},
      {"xor_self", X_S Y_S "ROOT r = xor(x, y)", ""},

      {"bits_neutral", X_S SPLAT("s32", "-1") "ROOT r = and(x, c)", "p0"},
      {"bits_neutral", X_S SPLAT("s32", "0") "ROOT r = or(c, x)", "p0"},
      {"bits_neutral", X_S SPLAT("s32", "0") "ROOT r = xor(x, c)", "p0"},
      {"bits_neutral", X_S SPLAT("s32", "0") "ROOT r = and(x, c)", "broadcast[4]{}(0)"},
      {"bits_neutral", "x = pred[4] parameter(0)" SPLAT("pred", "true") "ROOT r = or(x, c)",
       "broadcast[4]{}(true)"},
      {"bits_neutral", X_S SPLAT("s32", "1") "ROOT r = and(x, c)", ""},
      {"bits_neutral", X_S SPLAT("s32", "-1") "ROOT r = xor(x, c)", ""},

      {"shift_zero", X_S SPLAT("s32", "0") "ROOT r = shift-left(x, c)", "p0"},
      {"shift_zero", X_S SPLAT("s32", "0") "ROOT r = shift-right-logical(c, x)", ""},

      {"extreme_bound", X_F SPLAT("f32", "-inf") "ROOT r = maximum(x, c)", "p0"},
      {"extreme_bound", X_F SPLAT("f32", "inf") "ROOT r = minimum(c, x)", "p0"},
      {"extreme_bound", X_S SPLAT("s32", "-2147483648") "ROOT r = maximum(x, c)", "p0"},
      {"extreme_bound", X_U SPLAT("u8", "255") "ROOT r = minimum(x, c)", "p0"},
      {"extreme_bound", X_F SPLAT("f32", "inf") "ROOT r = maximum(x, c)", ""},
      {"extreme_bound", X_S SPLAT("s32", "-2147483647") "ROOT r = maximum(x, c)", ""},

      {"constant_right", X_F SPLAT("f32", "2") "ROOT r = multiply(c, x)",
       "multiply(p0, broadcast[4]{}(2))"},
      {"constant_right", X_F SPLAT("f32", "2") "ROOT r = multiply(x, c)", ""},
      {"constant_right", X_F SPLAT("f32", "2") "ROOT r = subtract(c, x)", ""},

      {"constants_together",
       X_S SPLAT("s32", "2") "d = s32[4] constant({1, 2, 3, 4}) a = add(x, c) ROOT r = add(a, d)",
       "add(p0, add(broadcast[4]{}(2), constant[4]))"},
      {"constants_together",
       X_F SPLAT("f32", "2") "d = f32[4] constant({1, 2, 3, 4}) a = maximum(x, c) ROOT r = "
                             "maximum(a, d)",
       "maximum(p0, maximum(broadcast[4]{}(2), constant[4]))"},
      {"constants_together",
       X_F SPLAT("f32", "2") "d = f32[4] constant({1, 2, 3, 4}) a = add(x, c) ROOT r = add(a, d)",
       ""},
      {"constants_together",
       X_S SPLAT("s32", "2") "d = s32[4] constant({1, 2, 3, 4}) a = add(x, c) ROOT r = "
                             "multiply(a, d)",
       ""},

      {"complex_parts", X_F Y_F "z = complex(x, y) ROOT r = imag(z)", "p1"},
      {"complex_parts", "z = c64[4] parameter(0) a = real(z) b = imag(z) ROOT r = complex(a, b)",
       "p0"},
      {"complex_parts", "z = c64[4] parameter(0) a = real(z) b = imag(z) ROOT r = complex(b, a)",
       ""},
  };
  return kCases;
}

TEST(Rules, Arithmetic) { check_rule_cases(arithmetic_cases()); }

}  // namespace heddle::opt
