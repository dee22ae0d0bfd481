// The implemented examples of stages.md, and every kind of access, as kernels that the kernel
// interpreter checks.

#include <gtest/gtest.h>

#include "compiler/fusion_check.h"
#include "hlo/text.h"

namespace heddle::stitch {
namespace {

using compiler::FusionCheck;

FusionCheck run_fusion(const std::string& text, const char* target_name = "icelake",
                       int64_t reduction_length = 4096) {
  auto module = hlo::parse_module(text);
  EXPECT_TRUE(module.has_value()) << (module ? "" : module.error().message);
  auto target = target::find_target(target_name);
  EXPECT_TRUE(target.has_value());
  FusionCheck checked = compiler::check_fusion(**module, *target, 7, reduction_length);
  EXPECT_EQ(checked.failure, "") << checked.text;
  return checked;
}

TEST(StitchTest, ElementwiseChainIsFlat) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  a = f32[7,36] parameter(0)
  b = f32[36] parameter(1)
  c = f32[7,36] parameter(2)
  bb = f32[7,36] broadcast(b), dimensions={1}
  s = f32[7,36] add(a, bb)
  t = f32[7,36] tanh(s)
  ROOT r = f32[7,36] multiply(t, c)
})");
  FusionCheck flat = run_fusion(R"(HloModule m
ENTRY e {
  a = f32[7,5,36] parameter(0)
  c = f32[7,5,36] parameter(1)
  ROOT r = f32[7,5,36] multiply(a, c)
})");
  EXPECT_EQ(flat.placed.graph.stages[0].out.size(), 1u);
}

// A value that is read one row later: before its first row nothing is read, and if it is stored
// itself, it has separate loops.
TEST(StitchTest, ReadOneRowFurtherOn) {
  run_fusion(R"(HloModule m
ENTRY e {
  x = f32[7,2] parameter(0)
  y = f32[8,2] parameter(1)
  one = f32[] constant(1)
  ones = f32[7,2] broadcast(one), dimensions={}
  a = f32[7,2] abs(x)
  s = f32[7,2] add(a, ones)
  d = f32[7,2] divide(x, s)
  zero = f32[] constant(0)
  p = f32[8,2] pad(d, zero), padding=1_0x0_0
  t = f32[8,2] add(p, y)
  u = f32[8,2] abs(p)
  ROOT r = tuple(t, u)
})");
  run_fusion(R"(HloModule m
ENTRY e {
  x = f32[3,4] parameter(0)
  y = f32[3,4] parameter(1)
  s = f32[3,4] add(x, y)
  half = f32[] constant(0.5)
  p = f32[3,4] pad(s, half), padding=1_-1x0_0
  m = f32[3,4] multiply(p, y)
  ROOT r = tuple(s, p, m)
})");
}

constexpr const char* kLayerNorm = R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e {
  a = f32[12,100] parameter(0)
  b = f32[12,100] parameter(1)
  gamma = f32[100] parameter(2)
  beta = f32[100] parameter(3)
  x = f32[12,100] add(a, b)
  zero = f32[] constant(0)
  n = f32[] constant(0.01)
  nb = f32[12] broadcast(n), dimensions={}
  sum = f32[12] reduce(x, zero), dimensions={1}, to_apply=add
  mean = f32[12] multiply(sum, nb)
  meanb = f32[12,100] broadcast(mean), dimensions={0}
  d = f32[12,100] subtract(x, meanb)
  sq = f32[12,100] multiply(d, d)
  vsum = f32[12] reduce(sq, zero), dimensions={1}, to_apply=add
  var = f32[12] multiply(vsum, nb)
  eps = f32[] constant(1e-5)
  epsb = f32[12] broadcast(eps), dimensions={}
  ve = f32[12] add(var, epsb)
  q = f32[12] rsqrt(ve)
  qb = f32[12,100] broadcast(q), dimensions={0}
  y = f32[12,100] multiply(d, qb)
  gb = f32[12,100] broadcast(gamma), dimensions={1}
  bb = f32[12,100] broadcast(beta), dimensions={1}
  yg = f32[12,100] multiply(y, gb)
  ROOT r = f32[12,100] add(yg, bb)
})";

TEST(StitchTest, ResidualLayerNormIsOneKernelAndComputesNothingTwice) {
  FusionCheck ran = run_fusion(kLayerNorm);
  ASSERT_EQ(ran.kernel.phases.size(), 1u);
  for (const stage::Placed& placed : ran.placed.placement.stages) EXPECT_EQ(placed.recompute, 1.0);
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::rsqrt)], 12);
  // Both inputs are read once.
  EXPECT_EQ(ran.report.buffers[0].max_loads_per_elem, 1);
  EXPECT_EQ(ran.report.buffers[1].max_loads_per_elem, 1);
}

// A reader of the previous row needs separate loops: the current row's value is not that row's.
TEST(StitchTest, TheRowBeforeIsNotTheCurrentOne) {
  run_fusion(R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e {
  a = f32[6,32] parameter(0)
  zero = f32[] constant(0)
  sum = f32[6] reduce(a, zero), dimensions={1}, to_apply=add
  sumb = f32[6,32] broadcast(sum), dimensions={0}
  d = f32[6,32] subtract(a, sumb)
  shifted = f32[6,32] pad(d, zero), padding=1_-1x0_0
  r = f32[6,32] multiply(d, shifted)
  ROOT t = (f32[6,32], f32[6,32], f32[6,32]) tuple(d, shifted, r)
})");
}

TEST(StitchTest, LayerNormOnOtherTargets) {
  run_fusion(kLayerNorm, "avx2");
  run_fusion(kLayerNorm, "portable");
}

constexpr const char* kSoftmax = R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
max { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] maximum(x, y) }
ENTRY e {
  x = f32[2,3,4,40] parameter(0)
  mask = f32[2,40] parameter(1)
  scale = f32[] constant(0.125)
  sb = f32[2,3,4,40] broadcast(scale), dimensions={}
  xs = f32[2,3,4,40] multiply(x, sb)
  mb = f32[2,3,4,40] broadcast(mask), dimensions={0,3}
  t = f32[2,3,4,40] add(xs, mb)
  ninf = f32[] constant(-inf)
  m = f32[2,3,4] reduce(t, ninf), dimensions={3}, to_apply=max
  mbb = f32[2,3,4,40] broadcast(m), dimensions={0,1,2}
  d = f32[2,3,4,40] subtract(t, mbb)
  e = f32[2,3,4,40] exponential(d)
  zero = f32[] constant(0)
  z = f32[2,3,4] reduce(e, zero), dimensions={3}, to_apply=add
  zb = f32[2,3,4,40] broadcast(z), dimensions={0,1,2}
  ROOT r = f32[2,3,4,40] divide(e, zb)
})";

TEST(StitchTest, SoftmaxWithScaleAndMask) {
  FusionCheck ran = run_fusion(kSoftmax);
  ASSERT_EQ(ran.kernel.phases.size(), 1u);
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::exp)] +
                ran.report.op_counts[static_cast<size_t>(kernel::Op::exp_fast)],
            2 * 3 * 4 * 40);
  EXPECT_EQ(ran.report.buffers[0].max_loads_per_elem, 1);
}

TEST(StitchTest, ColumnReduction) {
  run_fusion(R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e {
  a = f32[50,300] parameter(0)
  c = f32[] constant(2)
  ROOT s = f32[300] reduce(a, c), dimensions={0}, to_apply=add
})");
}

TEST(StitchTest, FullReductionIsSplitIntoPhases) {
  FusionCheck ran = run_fusion(R"(HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e {
  a = f32[512,300] parameter(0)
  p = f32[512,300] abs(a)
  c = f32[] constant(0)
  ROOT s = f32[] reduce(p, c), dimensions={0,1}, to_apply=add
})",
                               "icelake", 1 << 18);
  EXPECT_EQ(ran.kernel.phases.size(), 2u);
}

TEST(StitchTest, VariadicReductionArgmax) {
  run_fusion(R"(HloModule m
argmax {
  v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  gt = pred[] compare(v0, v1), direction=GT
  eq = pred[] compare(v0, v1), direction=EQ
  lt = pred[] compare(i0, i1), direction=LT
  tie = pred[] and(eq, lt)
  first = pred[] or(gt, tie)
  v = f32[] select(first, v0, v1)
  i = s32[] select(first, i0, i1)
  ROOT t = (f32[], s32[]) tuple(v, i)
}
ENTRY e {
  a = f32[5,70] parameter(0)
  i = s32[5,70] iota(), iota_dimension=1
  ninf = f32[] constant(-inf)
  big = s32[] constant(2147483647)
  ROOT r = (f32[5], s32[5]) reduce(a, i, ninf, big), dimensions={1}, to_apply=argmax
})");
}

TEST(StitchTest, MovesData) {
  run_fusion(R"(HloModule m
ENTRY e {
  a = f32[4,6,10] parameter(0)
  b = f32[4,6,3] parameter(1)
  z = f32[] constant(1.5)
  t = f32[10,4,6] transpose(a), dimensions={2,0,1}
  u = f32[10,24] reshape(t)
  p = f32[12,26] pad(u, z), padding=1_1x0_2
  q = f32[12,26] reverse(p), dimensions={1}
  c = f32[4,6,13] concatenate(a, b), dimensions={2}
  d = f32[312] reshape(c)
  d2 = f32[12,26] reshape(d)
  ROOT s = f32[12,26] add(q, d2)
})");
}

// A nearest resize: adjacent elements of the result come from one element of the input, and are
// stored together.
TEST(StitchTest, RepeatsSideBySideShareLanes) {
  for (const char* target : {"icelake", "avx2", "portable"})
    for (const int times : {2, 4, 8, 3}) {
      FusionCheck ran = run_fusion(fmt::format(R"(HloModule m
ENTRY e {{
  x = f32[3,5,21] parameter(0)
  y = f32[3,5,21] parameter(1)
  s = f32[3,5,21] add(x, y)
  a = f32[3,5,{0},21,{0}] broadcast(s), dimensions={{0,1,3}}
  ROOT r = f32[3,{1},{2}] reshape(a)
}})",
                                               times, 5 * times, 21 * times),
                                   target);
      ASSERT_EQ(ran.placed.graph.stages.size(), 1u);
      const stage::Digit& last = ran.placed.graph.stages[0].out.back();
      EXPECT_EQ(last.extent, times == 3 ? 3 : 21 * times);
    }
}

// Lanes over a concatenation: a loop per part, nothing is masked except ends of vectors.
TEST(StitchTest, PartsOfAConcatenationAreLoops) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  a = f32[3,32] parameter(0)
  b = f32[3,48] parameter(1)
  c = f32[3,20] parameter(2)
  t = f32[3,48] tanh(b)
  x = f32[3,100] concatenate(a, t, c), dimensions={1}
  ROOT r = f32[3,100] negate(x)
})");
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::select)], 0);
  EXPECT_EQ(ran.report.op_counts[static_cast<size_t>(kernel::Op::tanh)], 3 * 48);
  for (const kernel::Expr& expr : ran.kernel.exprs()) EXPECT_FALSE(expr.guarded);
}

// A gate per channel is computed for each row of the image, not for each pixel; lanes stay along
// the channels.
TEST(StitchTest, WhatIsBroadcastIsNotComputedForEveryPixel) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  x = f32[1,56,56,144] parameter(0)
  g = f32[1,144] parameter(1)
  l = f32[1,144] logistic(g)
  gb = f32[1,56,56,144] broadcast(l), dimensions={0,3}
  ROOT r = f32[1,56,56,144] multiply(x, gb)
})");
  int64_t gates = 0;
  for (kernel::Op op : {kernel::Op::logistic, kernel::Op::logistic_fast})
    gates += ran.report.op_counts[static_cast<size_t>(op)];
  EXPECT_LE(gates, 56 * 144);
  const auto& row = std::get<stage::Row>(ran.placed.schedule.nodes[1]);
  EXPECT_EQ(row.own.back().digits[0], 2);
}

TEST(StitchTest, GathersAndSlicesAtRunTime) {
  run_fusion(R"(HloModule m
ENTRY e {
  table = f32[30,16] parameter(0)
  ids = s32[5,4] parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  g = f32[5,4,16] gather(table, ids), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,16}
  ROOT s = f32[2,4,16] dynamic-slice(g, at, zero, zero), dynamic_slice_sizes={2,4,16}
})");
}

TEST(StitchTest, DynamicUpdateSlice) {
  run_fusion(R"(HloModule m
ENTRY e {
  x = f32[8,20] parameter(0)
  u = f32[3,20] parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT s = f32[8,20] dynamic-update-slice(x, u, at, zero)
})");
}

TEST(StitchTest, SmallTypes) {
  run_fusion(R"(HloModule m
ENTRY e {
  a = bf16[9,33] parameter(0)
  b = bf16[9,33] parameter(1)
  s = bf16[9,33] add(a, b)
  f = f32[9,33] convert(s)
  i = s32[9,33] convert(f)
  k = s32[] constant(3)
  kb = s32[9,33] broadcast(k), dimensions={}
  c = pred[9,33] compare(i, kb), direction=LT
  h = f16[9,33] convert(s)
  z = f16[] constant(7)
  zb = f16[9,33] broadcast(z), dimensions={}
  ROOT r = f16[9,33] select(c, h, zb)
})");
}

TEST(StitchTest, ConvolutionAndWindowAsReductions) {
  run_fusion(R"(HloModule m
ENTRY e {
  x = f32[2,6,9,9] parameter(0)
  w = f32[8,3,3,3] parameter(1)
  ROOT c = f32[2,8,5,5] convolution(x, w), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=2
})");
  run_fusion(R"(HloModule m
max { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] maximum(x, y) }
ENTRY e {
  x = f32[2,3,9,9] parameter(0)
  ninf = f32[] constant(-inf)
  ROOT c = f32[2,3,5,5] reduce-window(x, ninf), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1}, to_apply=max
})");
}

TEST(StitchTest, PlainGemmWithEpilogue) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  a = f32[37,21] parameter(0)
  b = f32[21,70] parameter(1)
  bias = f32[70] parameter(2)
  res = f32[37,70] parameter(3)
  d = f32[37,70] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[37,70] broadcast(bias), dimensions={1}
  s = f32[37,70] add(d, bb)
  t = f32[37,70] tanh(s)
  ROOT r = f32[37,70] add(t, res)
})");
  EXPECT_TRUE(std::get<stage::Row>(ran.placed.schedule.nodes[0]).gemm() != nullptr);
}

TEST(StitchTest, PackedGemmWithHeadTranspose) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  a = f32[20,64] parameter(0)
  packed = f32[3,64,32] parameter(1)
  bias = f32[96] parameter(2)
  t = f32[64,3,32] transpose(packed), dimensions={1,0,2}
  b = f32[64,96] reshape(t)
  d = f32[20,96] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[20,96] broadcast(bias), dimensions={1}
  s = f32[20,96] add(d, bb)
  h = f32[2,10,6,16] reshape(s)
  ROOT r = f32[2,6,10,16] transpose(h), dimensions={0,2,1,3}
})");
  const stage::GemmTile* gemm = std::get<stage::Row>(ran.placed.schedule.nodes[0]).gemm();
  ASSERT_NE(gemm, nullptr);
  EXPECT_EQ(gemm->record.nv * gemm->record.lanes, 32);
}

TEST(StitchTest, BatchedGemmWithTransposedRightSide) {
  FusionCheck ran = run_fusion(R"(HloModule m
ENTRY e {
  q = f32[6,20,16] parameter(0)
  k = f32[6,33,16] parameter(1)
  ROOT d = f32[6,20,33] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
})");
  EXPECT_TRUE(std::get<stage::Row>(ran.placed.schedule.nodes[0]).gemm()->record.copy_b);
}

TEST(StitchTest, MatrixVectorAndOddDots) {
  run_fusion(R"(HloModule m
ENTRY e {
  a = f32[37,50] parameter(0)
  x = f32[50] parameter(1)
  ROOT d = f32[37] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  run_fusion(R"(HloModule m
ENTRY e {
  a = s32[7,5] parameter(0)
  x = s32[5,6] parameter(1)
  ROOT d = s32[7,6] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
  run_fusion(R"(HloModule m
ENTRY e {
  a = f32[1,50] parameter(0)
  x = f32[50,333] parameter(1)
  ROOT d = f32[1,333] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})");
}

// Two results of one element: the first is stored before the second reads the input, so neither may
// overwrite it.
TEST(StitchTest, ResultsOfOneReductionDoNotOverwriteWhatItReads) {
  const FusionCheck ran = run_fusion(R"(HloModule m
both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] add(a, c)
  m = f32[] maximum(b, d)
  ROOT t = (f32[], f32[]) tuple(s, m)
}
ENTRY e {
  x = f32[1] parameter(0)
  z = f32[] constant(0)
  ROOT r = (f32[], f32[]) reduce(x, x, z, z), dimensions={0}, to_apply=both
})");
  EXPECT_EQ(ran.in_place, (std::vector<int>{-1, -1}));
}

}  // namespace
}  // namespace heddle::stitch
