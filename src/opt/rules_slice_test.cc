#include <gtest/gtest.h>

#include "opt/test_util.h"

namespace heddle::opt {

#define X8 "x = f32[8] parameter(0)\n"
#define X23 "x = f32[2,3] parameter(0)\n"
#define Z "z = f32[] constant(0)\n"
#define START(number) "i = s32[] constant(" number ")\n"

const std::vector<RuleCase>& slice_cases() {
  static const std::vector<RuleCase> kCases = {
      {"slice_all", X8 "ROOT r = f32[8] slice(x), slice={[0:8]}", "p0"},
      {"slice_all", X8 "ROOT r = f32[4] slice(x), slice={[0:8:2]}", ""},

      {"slice_slice",
       X8 "a = f32[4] slice(x), slice={[1:8:2]} ROOT r = f32[2] slice(a), slice={[1:4:2]}",
       "slice[2]{3:8:4}(p0)"},
      {"slice_slice", X8 "a = negate(x) ROOT r = f32[2] slice(a), slice={[1:3]}", ""},

      {"slice_broadcast",
       X8 "a = f32[4,8] broadcast(x), dimensions={1} ROOT r = f32[2,3] slice(a), "
          "slice={[1:3], [2:5]}",
       "broadcast[2,3]{1}(slice[3]{2:5}(p0))"},
      {"slice_broadcast", X23 "ROOT r = f32[1,3] slice(x), slice={[0:1], [0:3]}", ""},

      {"slice_transpose",
       X23 "a = transpose(x), dimensions={1,0} ROOT r = f32[2,2] slice(a), slice={[1:3], [0:2]}",
       "transpose[2,2]{1,0}(slice[2,2]{0:2,1:3}(p0))"},
      {"slice_transpose",
       X23 "a = transpose(x), dimensions={1,0} b = f32[2,2] slice(a), slice={[1:3], [0:2]}\n"
           "ROOT r = tuple(a, b)",
       ""},

      {"slice_concatenate",
       X8 "y = f32[8] parameter(1) c = concatenate(x, y), dimensions={0}\n"
          "ROOT r = f32[2] slice(c), slice={[9:11]}",
       "slice[2]{1:3}(p1)"},
      {"slice_concatenate",
       X8 "y = f32[8] parameter(1) c = concatenate(x, y, x), dimensions={0}\n"
          "ROOT r = f32[8] slice(c), slice={[4:12]}",
       "slice[8]{4:12}(concatenate[16]{0}(p0, p1))"},
      {"slice_concatenate",
       X8 "y = f32[8] parameter(1) c = concatenate(x, y), dimensions={0}\n"
          "ROOT r = f32[2] slice(c), slice={[7:9]}",
       ""},

      {"slice_pad",
       X8 Z "a = f32[12] pad(x, z), padding=2_2 ROOT r = f32[6] slice(a), slice={[3:9]}",
       "slice[6]{1:7}(p0)"},
      {"slice_pad",
       X8 Z "a = f32[12] pad(x, z), padding=2_2 ROOT r = f32[6] slice(a), slice={[1:7]}", ""},
      {"slice_pad",
       X8 Z "a = f32[12] pad(x, z), padding=2_2 ROOT r = f32[6] slice(a), slice={[5:11]}", ""},
      {"slice_pad",
       X8 Z "a = f32[12] pad(x, z), padding=2_2 ROOT r = f32[8] slice(a), slice={[2:10]}",
       "slice[8]{0:8}(p0)"},
      {"slice_pad",
       X8 Z "a = f32[15] pad(x, z), padding=0_0_1 ROOT r = f32[6] slice(a), slice={[1:7]}", ""},

      {"scatter_one_box",
       "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
       "ENTRY e { x = f32[5,6] parameter(0) u = f32[3,2] parameter(1) i = s32[2] constant({2, 3})\n"
       "ROOT r = f32[5,6] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, "
       "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f }",
       "*"},
      {"scatter_one_box",
       "f { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\n"
       "ENTRY e { x = f32[5,6] parameter(0) u = f32[6] parameter(1) k = s32[] constant(1)\n"
       "i = s32[1] broadcast(k), dimensions={}\n"
       "ROOT r = f32[5,6] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0}, "
       "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=f }",
       "*"},
      {"scatter_one_box",  // a part of it is outside
       "f { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\n"
       "ENTRY e { x = f32[5,6] parameter(0) u = f32[3,2] parameter(1) i = s32[2] constant({3, 3})\n"
       "ROOT r = f32[5,6] scatter(x, i, u), update_window_dims={0,1}, inserted_window_dims={}, "
       "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=f }",
       ""},
      {"scatter_one_each",
       "s { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = add(a, b) }\n"
       "ENTRY e { z = f32[] constant(0) o = f32[3,5] broadcast(z), dimensions={}\n"
       "i = s32[3,1] parameter(0) u = f32[3] parameter(1)\n"
       "ROOT r = f32[3,5] scatter(o, i, u), update_window_dims={}, inserted_window_dims={1}, "
       "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
       "scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=s }",
       "select(compare.EQ(iota[3,5]{1}(), broadcast[3,5]{0}(transpose[3]{0}(reshape[3](p0)))), "
       "add(broadcast[3,5]{}(0), broadcast[3,5]{0}(transpose[3]{0}(reshape[3](p1)))), "
       "broadcast[3,5]{}(0))"},
      {"random_bits",
       "ENTRY e { s = u64[3] parameter(0) ROOT r = (u64[3], u32[3,5]) rng-bit-generator(s), "
       "algorithm=rng_philox }",
       "*"},
      {"random_bits",
       "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u8[6]) rng-bit-generator(s), "
       "algorithm=rng_philox }",
       ""},
      {"while_of_elements",
       "c { t = (s32[], f32[3]) parameter(0) i = get-tuple-element(t), index=0\n"
       "n = s32[] constant(2) ROOT q = pred[] compare(i, n), direction=LT }\n"
       "b { t = (s32[], f32[3]) parameter(0) i = get-tuple-element(t), index=0\n"
       "x = get-tuple-element(t), index=1 o = s32[] constant(1) j = add(i, o)\n"
       "ROOT u = tuple(j, exponential(x)) }\n"
       "ENTRY e { z = s32[] constant(0) x = f32[3] parameter(0) t = tuple(z, x)\n"
       "w = (s32[], f32[3]) while(t), condition=c, body=b\n"
       "ROOT r = f32[3] get-tuple-element(w), index=1 }",
       "*"},
      // Steps with a sum stay a loop.
      {"while_of_elements",
       "s { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = add(a, b) }\n"
       "c { t = (s32[], f32[3]) parameter(0) i = get-tuple-element(t), index=0\n"
       "n = s32[] constant(2) ROOT q = pred[] compare(i, n), direction=LT }\n"
       "b { t = (s32[], f32[3]) parameter(0) i = get-tuple-element(t), index=0\n"
       "x = get-tuple-element(t), index=1 o = s32[] constant(1) j = add(i, o)\n"
       "z = f32[] constant(0) y = f32[] reduce(x, z), dimensions={0}, to_apply=s\n"
       "v = f32[3] broadcast(y), dimensions={} ROOT u = tuple(j, v) }\n"
       "ENTRY e { z = s32[] constant(0) x = f32[3] parameter(0) t = tuple(z, x)\n"
       "w = (s32[], f32[3]) while(t), condition=c, body=b\n"
       "ROOT r = f32[3] get-tuple-element(w), index=1 }",
       ""},
      // Two updates of a row.
      {"scatter_one_each",
       "s { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = add(a, b) }\n"
       "ENTRY e { z = f32[] constant(0) o = f32[3,5] broadcast(z), dimensions={}\n"
       "i = s32[3,2,1] parameter(0) u = f32[3,2] parameter(1)\n"
       "ROOT r = f32[3,5] scatter(o, i, u), update_window_dims={}, inserted_window_dims={1}, "
       "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
       "scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=s }",
       ""},

      {"dynamic_slice_known",
       X8 START("7") "ROOT r = f32[3] dynamic-slice(x, i), "
                     "dynamic_slice_sizes={3}",
       "slice[3]{5:8}(p0)"},
      {"dynamic_slice_known",
       X8 "i = s32[] parameter(1) ROOT r = f32[8] dynamic-slice(x, i), "
          "dynamic_slice_sizes={8}",
       "p0"},
      {"dynamic_slice_known",
       X23 START("-3") "j = s32[] parameter(1) ROOT r = f32[1,3] dynamic-slice(x, i, j), "
                       "dynamic_slice_sizes={1,3}",
       "slice[1,3]{0:1,0:3}(p0)"},
      {"dynamic_slice_known",
       X8 "i = s32[] parameter(1) ROOT r = f32[3] dynamic-slice(x, i), "
          "dynamic_slice_sizes={3}",
       ""},

      {"dynamic_update_slice_all",
       X8 "y = f32[8] parameter(1) i = s32[] parameter(2) ROOT r = f32[8] dynamic-update-slice(x, "
          "y, i)",
       "p1"},
      {"dynamic_update_slice_all",
       X8 "y = f32[7] parameter(1) i = s32[] parameter(2) ROOT r = f32[8] dynamic-update-slice(x, "
          "y, i)",
       ""},

      {"gather_known",
       X23 START("5") "ROOT r = f32[3] gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, "
                      "start_index_map={0}, index_vector_dim=0, slice_sizes={1,3}",
       "reshape[3](slice[1,3]{1:2,0:3}(p0))"},
      {"gather_known",
       X23 "i = s32[1,2] constant({{1, 1}}) ROOT r = f32[1,1,2] gather(x, i), offset_dims={1,2}, "
           "collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2}",
       "reshape[1,1,2](slice[1,2]{1:2,1:3}(p0))"},
      {"gather_known",
       X23 "i = s32[2] constant({1, 0}) ROOT r = f32[2,3] gather(x, i), offset_dims={1}, "
           "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
       ""},

      {"concatenate_one", X8 "ROOT r = concatenate(x), dimensions={0}", "p0"},
      {"concatenate_one",
       X8 "e = f32[0] constant({}) ROOT r = concatenate(x, e, x), dimensions={0}",
       "concatenate[16]{0}(p0, p0)"},
      {"concatenate_one", X8 "ROOT r = concatenate(x, x), dimensions={0}", ""},

      {"concatenate_nested",
       X8 "a = concatenate(x, x), dimensions={0} ROOT r = concatenate(a, x), dimensions={0}",
       "concatenate[24]{0}(p0, p0, p0)"},
      {"concatenate_nested",
       X23 "a = concatenate(x, x), dimensions={0} b = f32[4,3] parameter(1)\n"
           "ROOT r = concatenate(a, b), dimensions={1}",
       ""},

      {"concatenate_slices",
       X8 "a = f32[3] slice(x), slice={[0:3]} b = f32[2] slice(x), slice={[3:5]}\n"
          "ROOT r = concatenate(a, b, x), dimensions={0}",
       "concatenate[13]{0}(slice[5]{0:5}(p0), p0)"},
      {"concatenate_slices",
       X8 "a = f32[3] slice(x), slice={[0:3]} b = f32[2] slice(x), slice={[4:6]}\n"
          "ROOT r = concatenate(a, b), dimensions={0}",
       ""},

      {"pad_nothing", X8 Z "ROOT r = f32[8] pad(x, z), padding=0_0", "p0"},
      {"pad_nothing",
       Z "a = f32[8] broadcast(z), dimensions={} ROOT r = f32[10] pad(a, z), padding=1_1",
       "broadcast[10]{}(0)"},
      {"pad_nothing",
       "n = f32[] constant(-0)" Z
       "a = f32[8] broadcast(n), dimensions={} ROOT r = f32[10] pad(a, z), padding=1_1",
       ""},
      {"pad_nothing", X8 Z "ROOT r = f32[8] pad(x, z), padding=1_-1", ""},

      {"pad_negative", X8 Z "ROOT r = f32[5] pad(x, z), padding=-1_-2", "slice[5]{1:6}(p0)"},
      {"pad_negative", X8 Z "ROOT r = f32[8] pad(x, z), padding=1_-1", ""},

      {"pad_pad", X8 Z "a = f32[9] pad(x, z), padding=1_0 ROOT r = f32[12] pad(a, z), padding=1_2",
       "pad[12]{2_2_0}(p0, 0)"},
      {"pad_pad",
       X8 Z "o = f32[] constant(1) a = f32[9] pad(x, z), padding=1_0\n"
            "ROOT r = f32[12] pad(a, o), padding=1_2",
       ""},
      {"pad_pad", X8 Z "a = f32[9] pad(x, z), padding=1_0 ROOT r = f32[8] pad(a, z), padding=-1_0",
       ""},

      {"convolution_pad",
       "x = f32[1,1,4] parameter(0) z = f32[] constant(0) k = f32[1,1,2] constant({{{2,3}}})\n"
       "a = f32[1,1,7] pad(x, z), padding=0_0x0_0x1_2\n"
       "ROOT r = f32[1,1,7] convolution(a, k), window={size=2 pad=1_0}, dim_labels=bf0_oi0->bf0",
       "convolution(p0, constant[1,1,2])"},
      {"convolution_pad",  // the features
       "x = f32[1,1,4] parameter(0) z = f32[] constant(0) k = f32[1,2,1] constant({{{2},{3}}})\n"
       "a = f32[1,2,4] pad(x, z), padding=0_0x1_0x0_0\n"
       "ROOT r = f32[1,1,4] convolution(a, k), window={size=1}, dim_labels=bf0_oi0->bf0",
       ""},
      {"convolution_pad",  // 0 * inf is NaN
       "x = f32[1,1,4] parameter(0) z = f32[] constant(0) k = f32[1,1,2] constant({{{2,inf}}})\n"
       "a = f32[1,1,5] pad(x, z), padding=0_0x0_0x1_0\n"
       "ROOT r = f32[1,1,4] convolution(a, k), window={size=2}, dim_labels=bf0_oi0->bf0",
       ""},

      {"convolution_reverse",
       "x = f32[2,3,5,4] parameter(0) k = f32[2,3,3,2] parameter(1)\n"
       "b = f32[2,3,3,2] reverse(k), dimensions={2,3}\n"
       "ROOT r = f32[2,2,5,3] convolution(x, b), window={size=3x2 pad=1_1x0_0}, "
       "dim_labels=bf01_oi01->bf01",
       "convolution(p0, p1)"},
      {"convolution_reverse",  // the features
       "x = f32[2,3,5,4] parameter(0) k = f32[2,3,3,2] parameter(1)\n"
       "b = f32[2,3,3,2] reverse(k), dimensions={1,2}\n"
       "ROOT r = f32[2,2,5,3] convolution(x, b), window={size=3x2 pad=1_1x0_0}, "
       "dim_labels=bf01_oi01->bf01",
       ""},

      {"empty_result", "x = f32[0,3] parameter(0) ROOT r = negate(x)", "constant[0,3]"},
      {"empty_result", X8 "ROOT r = f32[0] slice(x), slice={[3:3]}", "constant[0]"},
      {"empty_result", X8 "ROOT r = negate(x)", ""},
  };
  return kCases;
}

TEST(Rules, Slice) { check_rule_cases(slice_cases()); }

}  // namespace heddle::opt
