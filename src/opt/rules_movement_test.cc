#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {

#define X4 "x = f32[4] parameter(0)\n"
#define X23 "x = f32[2,3] parameter(0)\n"
#define X234 "x = f32[2,3,4] parameter(0)\n"

const std::vector<RuleCase>& reshape_cases() {
  static const std::vector<RuleCase> kCases = {
      {"reshape_same", X23 "ROOT r = f32[2,3] reshape(x)", "p0"},
      {"reshape_same", X23 "ROOT r = f32[3,2] reshape(x)", ""},
      {"reshape_same", "x = f32[<=6] parameter(0) ROOT r = f32[6] reshape(x)", ""},

      {"reshape_reshape", X23 "a = f32[6] reshape(x) ROOT r = f32[3,2] reshape(a)",
       "reshape[3,2](p0)"},
      {"reshape_reshape",
       X23 "a = f32[3,2] transpose(x), dimensions={1,0} ROOT r = f32[6] reshape(a)", ""},

      {"reshape_broadcast",
       X4 "a = f32[2,3,4] broadcast(x), dimensions={2} ROOT r = f32[6,4] reshape(a)",
       "broadcast[6,4]{1}(p0)"},
      {"reshape_broadcast",
       X23 "a = f32[2,3,4] broadcast(x), dimensions={0,1} ROOT r = f32[6,1,4] reshape(a)",
       "broadcast[6,1,4]{0}(reshape[6](p0))"},
      {"reshape_broadcast",
       "x = f32[] parameter(0) a = f32[2,3] broadcast(x), dimensions={} ROOT r = f32[6] reshape(a)",
       "broadcast[6]{}(p0)"},
      {"reshape_broadcast",
       "x = f32[1,4] parameter(0) a = f32[1,4,3] broadcast(x), dimensions={0,1} ROOT r = "
       "f32[2,2,3] "
       "reshape(a)",
       "broadcast[2,2,3]{0,1}(reshape[2,2](p0))"},
      // Repeated and read elements in one dimension.
      {"reshape_broadcast",
       X4 "a = f32[3,4] broadcast(x), dimensions={1} ROOT r = f32[12] reshape(a)", ""},
      {"reshape_broadcast",
       X23 "a = f32[3,2,4] broadcast(x), dimensions={1,0} ROOT r = f32[6,4] reshape(a)", ""},

      {"reshape_iota", "a = s32[2,3,4] iota(), iota_dimension=1 ROOT r = s32[2,3,2,2] reshape(a)",
       "iota[2,3,2,2]{1}()"},
      {"reshape_iota", "a = s32[2,3,4] iota(), iota_dimension=1 ROOT r = s32[6,4] reshape(a)", ""},

      {"reshape_constant", "a = s32[2,2] constant({{1, 2}, {3, 4}}) ROOT r = s32[4] reshape(a)",
       "constant[4]"},
      {"reshape_constant", X4 "ROOT r = f32[2,2] reshape(x)", ""},

      {"transpose_same", X23 "ROOT r = f32[2,3] transpose(x), dimensions={0,1}", "p0"},
      {"transpose_same",
       "x = f32[1,3,1,2] parameter(0) ROOT r = f32[3,1,2,1] transpose(x), dimensions={1,0,3,2}",
       "reshape[3,1,2,1](p0)"},
      {"transpose_same", X23 "ROOT r = f32[3,2] transpose(x), dimensions={1,0}", ""},

      {"transpose_transpose",
       X234 "a = transpose(x), dimensions={2,0,1} ROOT r = transpose(a), dimensions={0,2,1}",
       "transpose[4,3,2]{2,1,0}(p0)"},
      {"transpose_transpose", X23 "a = negate(x) ROOT r = transpose(a), dimensions={1,0}", ""},

      {"transpose_broadcast",
       X4 "a = f32[3,4] broadcast(x), dimensions={1} ROOT r = transpose(a), dimensions={1,0}",
       "broadcast[4,3]{0}(p0)"},
      {"transpose_broadcast", X23 "ROOT r = transpose(x), dimensions={1,0}", ""},

      {"transpose_iota",
       "a = s32[2,3] iota(), iota_dimension=1 ROOT r = transpose(a), dimensions={1,0}",
       "iota[3,2]{0}()"},
      {"transpose_iota", X23 "ROOT r = transpose(x), dimensions={1,0}", ""},

      {"reverse_ones", "x = f32[1,3] parameter(0) ROOT r = reverse(x), dimensions={0,1}",
       "reverse[1,3]{1}(p0)"},
      {"reverse_ones",
       X4 "a = f32[3,4] broadcast(x), dimensions={1} ROOT r = reverse(a), dimensions={0}",
       "broadcast[3,4]{1}(p0)"},
      {"reverse_ones", X4 "ROOT r = reverse(x), dimensions={0}", ""},

      {"reverse_reverse", X4 "a = reverse(x), dimensions={0} ROOT r = reverse(a), dimensions={0}",
       "p0"},
      {"reverse_reverse",
       X23 "a = reverse(x), dimensions={0,1} ROOT r = reverse(a), dimensions={0}",
       "reverse[2,3]{1}(p0)"},
      {"reverse_reverse", X4 "a = negate(x) ROOT r = reverse(a), dimensions={0}", ""},
  };
  return kCases;
}

TEST(Rules, Reshape) { check_rule_cases(reshape_cases()); }

const std::vector<RuleCase>& broadcast_cases() {
  static const std::vector<RuleCase> kCases = {
      {"broadcast_same", X23 "ROOT r = f32[2,3] broadcast(x), dimensions={0,1}", "p0"},
      {"broadcast_same", X4 "ROOT r = f32[1,4,1] broadcast(x), dimensions={1}",
       "reshape[1,4,1](p0)"},
      {"broadcast_same", X4 "ROOT r = f32[2,4] broadcast(x), dimensions={1}", ""},
      {"broadcast_same", X23 "ROOT r = f32[3,2] broadcast(x), dimensions={1,0}", ""},

      {"broadcast_order", X23 "ROOT r = f32[3,4,2] broadcast(x), dimensions={2,0}",
       "broadcast[3,4,2]{0,2}(transpose[3,2]{1,0}(p0))"},
      {"broadcast_order", X23 "ROOT r = f32[2,4,3] broadcast(x), dimensions={0,2}", ""},

      {"broadcast_broadcast",
       X4 "a = f32[3,4] broadcast(x), dimensions={1} ROOT r = f32[2,3,4] broadcast(a), "
          "dimensions={1,2}",
       "broadcast[2,3,4]{2}(p0)"},
      {"broadcast_broadcast", X4 "a = negate(x) ROOT r = f32[2,4] broadcast(a), dimensions={1}",
       ""},

      {"broadcast_reshape",
       X4 "a = f32[1,4] reshape(x) ROOT r = f32[1,4,3] broadcast(a), dimensions={0,1}",
       "broadcast[1,4,3]{1}(p0)"},
      {"broadcast_reshape",
       X4 "a = f32[2,2] reshape(x) ROOT r = f32[2,2,3] broadcast(a), dimensions={0,1}", ""},
      {"broadcast_reshape",
       "x = f32[1,4] parameter(0) a = f32[4] reshape(x) ROOT r = f32[4,3] broadcast(a), "
       "dimensions={0}",
       ""},

      {"broadcast_iota",
       "a = s32[4] iota(), iota_dimension=0 ROOT r = s32[3,4] broadcast(a), dimensions={1}",
       "iota[3,4]{1}()"},
      {"broadcast_iota", X4 "ROOT r = f32[3,4] broadcast(x), dimensions={1}", ""},

      {"elementwise_broadcasts",
       X4 "y = f32[4] parameter(1) a = f32[3,4] broadcast(x), dimensions={1}\n"
          "b = f32[3,4] broadcast(y), dimensions={1} ROOT r = add(a, b)",
       "broadcast[3,4]{1}(add(p0, p1))"},
      {"elementwise_broadcasts",
       X4 "n = f32[] parameter(1) a = f32[3,4] broadcast(x), dimensions={1}\n"
          "b = f32[3,4] broadcast(n), dimensions={} ROOT r = multiply(a, b)",
       "broadcast[3,4]{1}(multiply(p0, broadcast[4]{}(p1)))"},
      {"elementwise_broadcasts",
       "n = f32[] parameter(0) a = f32[3,4] broadcast(n), dimensions={} ROOT r = exponential(a)",
       "broadcast[3,4]{}(exponential(p0))"},
      {"elementwise_broadcasts",
       X4 "a = f32[3,4] broadcast(x), dimensions={1} z = f32[] constant(0) o = f32[] constant(1)\n"
          "ROOT r = clamp(z, a, o)",
       "broadcast[3,4]{1}(clamp(0, p0, 1))"},
      {"elementwise_broadcasts",
       "p = pred[] parameter(0) x = f32[] parameter(1) a = f32[4] broadcast(x), dimensions={}\n"
       "z = f32[] constant(0) b = f32[4] broadcast(z), dimensions={} ROOT r = select(p, a, b)",
       "broadcast[4]{}(select(p0, p1, 0))"},
      // Along different dimensions.
      {"elementwise_broadcasts",
       X4 "a = f32[4,4] broadcast(x), dimensions={1} b = f32[4,4] broadcast(x), dimensions={0}\n"
          "ROOT r = add(a, b)",
       ""},
      {"elementwise_broadcasts",
       X4 "a = f32[3,4] broadcast(x), dimensions={1} b = f32[3,4] parameter(1) ROOT r = add(a, b)",
       ""},
      {"elementwise_broadcasts", "x = u32[] parameter(0) ROOT r = u8[4] bitcast-convert(x)", ""},
  };
  return kCases;
}

TEST(Rules, Broadcast) { check_rule_cases(broadcast_cases()); }

const std::vector<RuleCase>& reduce_cases() {
#define SUM "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = add(a, b) }\n"
#define MAX "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = maximum(a, b) }\n"
#define Z "z = f32[] constant(0)\n"
  static const std::vector<RuleCase> kCases = {
      {"reduce_nothing",
       MAX "ENTRY e {" X4 Z "ROOT r = reduce(x, z), dimensions={}, to_apply=max }",
       "maximum(broadcast[4]{}(0), p0)"},
      {"reduce_nothing",
       SUM "ENTRY e { x = f32[4,1] parameter(0)" Z
           "ROOT r = reduce(x, z), dimensions={1}, to_apply=add }",
       "add(broadcast[4]{}(0), reshape[4](p0))"},
      {"reduce_nothing",
       SUM "ENTRY e { x = f32[4,0] parameter(0)" Z
           "ROOT r = reduce(x, z), dimensions={1}, to_apply=add }",
       "broadcast[4]{}(0)"},
      {"reduce_nothing",
       SUM "ENTRY e {" X4 Z "ROOT r = reduce(x, z), dimensions={0}, to_apply=add }", ""},

      {"reduce_transpose",
       SUM "ENTRY e {" X234 Z
           "t = transpose(x), dimensions={2,0,1} ROOT r = reduce(t, z), dimensions={1,2}, "
           "to_apply=add }",
       "reduce[4]{0,1}(p0, 0)"},
      {"reduce_transpose",
       SUM "ENTRY e {" X234 Z
           "t = transpose(x), dimensions={2,1,0} ROOT r = reduce(t, z), dimensions={1}, "
           "to_apply=add }",
       "transpose[4,2]{1,0}(reduce[2,4]{1}(p0, 0))"},
      {"reduce_transpose",
       MAX "ENTRY e {" X23 Z
           "t = transpose(x), dimensions={1,0} ROOT r = reduce(t, z), dimensions={0,1}, "
           "to_apply=max }",
       "reduce[]{0,1}(p0, 0)"},
      // Another order of the sum.
      {"reduce_transpose",
       SUM "ENTRY e {" X23 Z
           "t = transpose(x), dimensions={1,0} ROOT r = reduce(t, z), dimensions={0,1}, "
           "to_apply=add }",
       ""},

      {"reduce_reshape",
       SUM "ENTRY e { x = f32[6,4] parameter(0)" Z
           "t = f32[2,3,4] reshape(x) ROOT r = reduce(t, z), dimensions={2}, to_apply=add }",
       "reshape[2,3](reduce[6]{1}(p0, 0))"},
      {"reduce_reshape",
       SUM "ENTRY e { x = f32[6,4] parameter(0)" Z
           "t = f32[2,3,1,4] reshape(x) ROOT r = reduce(t, z), dimensions={0,1,2}, to_apply=add }",
       "reduce[4]{0}(p0, 0)"},
      {"reduce_reshape",
       SUM "ENTRY e { x = f32[6,4] parameter(0)" Z
           "t = f32[2,3,4] reshape(x) ROOT r = reduce(t, z), dimensions={1,2}, to_apply=add }",
       ""},

      {"dot_empty",
       "x = f32[2,0] parameter(0) y = f32[0,3] parameter(1)\n"
       "ROOT r = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       "broadcast[2,3]{}(0)"},
      {"dot_empty",
       "x = f32[2,4] parameter(0) y = f32[4,3] parameter(1)\n"
       "ROOT r = dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
       ""},
  };
  return kCases;
}

TEST(Rules, Reduce) { check_rule_cases(reduce_cases()); }

}  // namespace heddle::opt
