// Programs with a bounded dimension, of bounded_programs_test.cc. In their text @ is its extent, #
// one more, $ three more, ~ twice as much.
#pragma once

#include <cstdint>

#include "bounded_texts.h"

namespace heddle {

struct Case {
  const char* name;
  int64_t bound;
  const char* text;
  bool trimmed = true;    // no kernel runs over the whole bound
  int64_t least = 1;      // extent that it is compiled for
  bool together = false;  // the rows of a batch
};

const Case kCases[] = {
    {"Elementwise", 70, R"(HloModule m
ENTRY e {
  x = f32[@,24] parameter(0)
  y = f32[@,24] parameter(1)
  b = f32[24] parameter(2)
  c = f32[@,24] broadcast(b), dimensions={1}
  s = f32[@,24] add(x, y)
  ROOT r = f32[@,24] multiply(s, c)
})"},
    {"ThreeRows", 3, kFewRows},
    {"FourRows", 4, kFewRows},
    {"SixRows", 6, kFewRows},
    {"Line", 100, R"(HloModule m
ENTRY e {
  x = f32[@] parameter(0)
  e = f32[@] exponential(x)
  ROOT r = f32[@] add(e, x)
})"},
    {"LayerNorm", 40, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[1,@,96] parameter(0)
  zero = f32[] constant(0)
  count = f32[] constant(96)
  sum = f32[1,@] reduce(x, zero), dimensions={2}, to_apply=add
  counts = f32[1,@] broadcast(count), dimensions={}
  mean = f32[1,@] divide(sum, counts)
  means = f32[1,@,96] broadcast(mean), dimensions={0,1}
  d = f32[1,@,96] subtract(x, means)
  q = f32[1,@,96] multiply(d, d)
  v = f32[1,@] reduce(q, zero), dimensions={2}, to_apply=add
  var = f32[1,@] divide(v, counts)
  one = f32[] constant(1)
  ones = f32[1,@] broadcast(one), dimensions={}
  shifted = f32[1,@] add(var, ones)
  root = f32[1,@] rsqrt(shifted)
  roots = f32[1,@,96] broadcast(root), dimensions={0,1}
  ROOT r = f32[1,@,96] multiply(d, roots)
})"},
    {"ReducedColumns", 96, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[@,40] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  sum = f32[40] reduce(x, zero), dimensions={0}, to_apply=add
  most = f32[40] reduce(x, low), dimensions={0}, to_apply=max
  ROOT r = f32[40] multiply(sum, most)
})",
     false},
    {"ReducedRows", 130, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[12,@] parameter(0)
  zero = f32[] constant(0)
  ROOT sum = f32[12] reduce(x, zero), dimensions={1}, to_apply=add
})"},
    {"ReducedToOne", 256, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[@] parameter(0)
  low = f32[] constant(-inf)
  ROOT most = f32[] reduce(x, low), dimensions={0}, to_apply=max
})"},
    // Vectors of some processors cut it into steps that are no power of two.
    {"ReducedToOneWithATail", 300, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[@] parameter(0)
  low = f32[] constant(-inf)
  ROOT most = f32[] reduce(x, low), dimensions={0}, to_apply=max
})",
     false},
    {"Softmax", 80, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[6,@] parameter(0)
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  most = f32[6] reduce(x, low), dimensions={1}, to_apply=max
  mosts = f32[6,@] broadcast(most), dimensions={0}
  d = f32[6,@] subtract(x, mosts)
  e = f32[6,@] exponential(d)
  sum = f32[6] reduce(e, zero), dimensions={1}, to_apply=add
  sums = f32[6,@] broadcast(sum), dimensions={0}
  ROOT r = f32[6,@] divide(e, sums)
})"},
    {"DotRows", 72, R"(HloModule m
ENTRY e {
  x = f32[@,48] parameter(0)
  w = f32[48,64] parameter(1)
  b = f32[64] parameter(2)
  d = f32[@,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bs = f32[@,64] broadcast(b), dimensions={1}
  s = f32[@,64] add(d, bs)
  zero = f32[] constant(0)
  zeros = f32[@,64] broadcast(zero), dimensions={}
  ROOT r = f32[@,64] maximum(s, zeros)
})"},
    {"DotOver", 64, R"(HloModule m
ENTRY e {
  x = f32[20,@] parameter(0)
  w = f32[@,32] parameter(1)
  ROOT d = f32[20,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
     false},
    {"GatherRows", 50, R"(HloModule m
ENTRY e {
  t = f32[30,16] parameter(0)
  i = s32[@] parameter(1)
  g = f32[@,16] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}
  ROOT r = f32[@,16] add(g, g)
})"},
    {"LargestOfRows", 70, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[@,8] parameter(0)
  y = f32[@,8] tanh(x)
  both = (f32[@,2], s32[@,2]) topk(y), k=2, largest=true
  v = f32[@,2] get-tuple-element(both), index=0
  i = s32[@,2] get-tuple-element(both), index=1
  zero = f32[] constant(0)
  s = f32[@] reduce(v, zero), dimensions={1}, to_apply=add
  ss = f32[@,2] broadcast(s), dimensions={0}
  ROOT r = (f32[@,2], s32[@,2]) tuple(ss, i)
})"},
    // The scatter reads places that other loops of the kernel make, and numbers that count them.
    {"ScatteredNumbers", 70, R"(HloModule m
last { a = s64[] parameter(0) ROOT b = s64[] parameter(1) }
ENTRY e {
  x = f32[@] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[@] broadcast(zero), dimensions={}
  is = pred[@] compare(x, zeros), direction=GT
  n = s64[@] iota(), iota_dimension=0
  none = s64[] constant(-1)
  nones = s64[@] broadcast(none), dimensions={}
  place = s64[@] select(is, n, nones)
  places = s64[@,1] reshape(place)
  z = s64[] constant(0)
  table = s64[@] broadcast(z), dimensions={}
  ROOT r = s64[@] scatter(table, places, n), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=last
})"},
    // Sums of parts, then their sum: the parts that are not there are sums of none.
    {"SumInParts", 36, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[@,5000] parameter(0)
  zero = f32[] constant(0)
  y = f32[@,5000] exponential(x)
  s = f32[] reduce(y, zero), dimensions={0,1}, to_apply=add
  ss = f32[@,5000] broadcast(s), dimensions={}
  ROOT r = f32[@,5000] divide(y, ss)
})"},
    {"FirstRow", 33, R"(HloModule m
ENTRY e {
  x = f32[1,@,32] parameter(0)
  y = f32[1,@,32] tanh(x)
  s = f32[1,1,32] slice(y), slice={[0:1], [0:1], [0:32]}
  ROOT t = (f32[1,@,32], f32[1,1,32]) tuple(y, s)
})"},
    {"BatchMerged", 20, R"(HloModule m
ENTRY e {
  x = f32[@,4,8] parameter(0)
  w = f32[8,16] parameter(1)
  a = f32[4,8] parameter(2)
  as = f32[@,4,8] broadcast(a), dimensions={1,2}
  y = f32[@,4,8] multiply(x, as)
  d = f32[@,4,16] dot(y, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT r = f32[@,64] reshape(d)
})"},
    {"Attention", 72, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[1,@,64] parameter(0)
  wq = f32[64,64] parameter(1)
  wk = f32[64,64] parameter(2)
  wv = f32[64,64] parameter(3)
  q0 = f32[1,@,64] dot(x, wq), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  k0 = f32[1,@,64] dot(x, wk), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  v0 = f32[1,@,64] dot(x, wv), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  q1 = f32[1,@,4,16] reshape(q0)
  k1 = f32[1,@,4,16] reshape(k0)
  v1 = f32[1,@,4,16] reshape(v0)
  q = f32[1,4,@,16] transpose(q1), dimensions={0,2,1,3}
  k = f32[1,4,@,16] transpose(k1), dimensions={0,2,1,3}
  v = f32[1,4,@,16] transpose(v1), dimensions={0,2,1,3}
  s = f32[1,4,@,@] dot(q, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  most = f32[1,4,@] reduce(s, low), dimensions={3}, to_apply=max
  mosts = f32[1,4,@,@] broadcast(most), dimensions={0,1,2}
  d = f32[1,4,@,@] subtract(s, mosts)
  e = f32[1,4,@,@] exponential(d)
  sum = f32[1,4,@] reduce(e, zero), dimensions={3}, to_apply=add
  sums = f32[1,4,@,@] broadcast(sum), dimensions={0,1,2}
  p = f32[1,4,@,@] divide(e, sums)
  o = f32[1,4,@,16] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
  o1 = f32[1,@,4,16] transpose(o), dimensions={0,2,1,3}
  o2 = f32[1,@,64] reshape(o1)
  ROOT r = f32[1,@,64] add(o2, x)
})"},
    // Rows of three sequences: in scratch the sequence is a dimension outside of the rows.
    {"BatchedEmbedding", 64, kEmbedding},
    // Tasks of 24 rows and one of 16, in one kernel, on the same scratch; the last one's rows are
    // not all there, the first one's always.
    {"BatchedChain", 64, kChain, true, 17},
    {"BatchedAttention", 40, kBatchedAttention},
    {"EmbeddingTogether", 64, kEmbedding, true, 1, true},
    {"ChainTogether", 64, kChain, true, 17, true},
    // Columns that the batch divides, behind rows of a batch.
    {"ColumnsTogether", 16, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[4,@,48] parameter(0)
  w1 = f32[48,48] parameter(1)
  w2 = f32[48,120] parameter(2)
  zero = f32[] constant(0)
  a = f32[4,@,48] dot(x, w1), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  y = f32[4,@,48] add(a, x)
  sum = f32[4,@] reduce(y, zero), dimensions={2}, to_apply=add
  sums = f32[4,@,48] broadcast(sum), dimensions={0,1}
  d = f32[4,@,48] subtract(y, sums)
  ROOT b = f32[4,@,120] dot(d, w2), lhs_contracting_dims={2}, rhs_contracting_dims={0}
})",
     true, 1, true},
    {"AttentionTogether", 40, kBatchedAttention, true, 1, true},
    {"Windows", 70, R"(HloModule m
ENTRY e {
  x = f32[1,@,32] parameter(0)
  w = f32[9,32,48] parameter(1)
  v = f32[3,48,32] parameter(2)
  y = f32[1,@,48] convolution(x, w), window={size=9 pad=4_4}, dim_labels=b0f_0io->b0f
  zero = f32[] constant(0)
  zeros = f32[1,@,48] broadcast(zero), dimensions={}
  z = f32[1,@,48] maximum(y, zeros)
  u = f32[1,@,32] convolution(z, v), window={size=3 pad=2_2 rhs_dilate=2}, dim_labels=b0f_0io->b0f
  r = f32[1,@,32] add(u, x)
  s = f32[1,@,48] convolution(r, w), window={size=9 pad=8_0}, dim_labels=b0f_0io->b0f
  ROOT t = (f32[1,@,32], f32[1,@,48]) tuple(r, s)
})"},
    {"WindowsOfLines", 24, R"(HloModule m
ENTRY e {
  x = f32[2,@,11,16] parameter(0)
  w = f32[3,3,16,32] parameter(1)
  v = f32[3,3,32,16] parameter(2)
  y = f32[2,@,11,32] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  e = f32[2,@,11,32] tanh(y)
  ROOT z = f32[2,@,11,16] convolution(e, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
})"},
    {"WindowsOfColumns", 24, R"(HloModule m
ENTRY e {
  x = f32[2,11,@,16] parameter(0)
  w = f32[3,3,16,32] parameter(1)
  v = f32[3,3,32,16] parameter(2)
  y = f32[2,11,@,32] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  e = f32[2,11,@,32] tanh(y)
  ROOT z = f32[2,11,@,16] convolution(e, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
})"},
    // Windows that reach over more columns than a tile has.
    {"WideWindowsOfColumns", 40, R"(HloModule m
ENTRY e {
  x = f32[1,5,@,16] parameter(0)
  w = f32[3,13,16,32] parameter(1)
  v = f32[1,3,32,48] parameter(2)
  y = f32[1,5,@,32] convolution(x, w), window={size=3x13 pad=1_1x6_6}, dim_labels=b01f_01io->b01f
  e = f32[1,5,@,32] tanh(y)
  ROOT z = f32[1,5,@,48] convolution(e, v), window={size=1x3 pad=0_0x8_8 rhs_dilate=1x8}, dim_labels=b01f_01io->b01f
})"},
    {"WindowsOfChannels", 24, R"(HloModule m
ENTRY e {
  x = f32[1,@,11,16] parameter(0)
  w = f32[3,3,1,16] parameter(1)
  one = f32[] constant(1)
  ones = f32[1,@,11,16] broadcast(one), dimensions={}
  a = f32[1,@,11,16] add(x, ones)
  y = f32[1,@,11,16] convolution(a, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=16
  b = f32[1,@,11,16] add(y, ones)
  ROOT z = f32[1,@,11,16] convolution(b, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=16
})"},
    {"LargestOfWindows", 40, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[3,@,8] parameter(0)
  low = f32[] constant(-inf)
  n = f32[3,@,8] negate(x)
  y = f32[3,@,8] reduce-window(n, low), window={size=1x5x1 pad=0_0x2_2x0_0}, to_apply=max
  ROOT e = f32[3,@,8] exponential(y)
})"},
    {"StridedWindows", 20, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[1,@,2,16] parameter(0)
  w = f32[3,16,16] parameter(1)
  p = f32[1,~,16] reshape(x)
  y = f32[1,~,16] convolution(p, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
  z = f32[1,@,16] convolution(y, w), window={size=3 pad=1_1 stride=2}, dim_labels=b0f_0io->b0f
  low = f32[] constant(-inf)
  m = f32[1,@,16] reduce-window(y, low), window={size=1x2x1 stride=1x2x1}, to_apply=max
  s = f32[1,@,16] add(z, m)
  ROOT u = f32[1,@,16] convolution(s, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
})"},
    {"GrowingCache", 63, kGrowingCache},
    {"GrowingCacheOfOddLength", 70, kGrowingCache, false},
    {"JoinedBehind", 50, R"(HloModule m
ENTRY e {
  x = f32[3,@,16] parameter(0)
  y = f32[3,3,16] parameter(1)
  c = f32[3,$,16] concatenate(x, y), dimensions={1}
  w = f32[16,24] parameter(2)
  r = f32[3,$,24] dot(c, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  ROOT t = (f32[3,$,24], f32[3,$,16]) tuple(r, c)
})"},
    {"JoinedInFront", 50, R"(HloModule m
ENTRY e {
  x = f32[1,@,16] parameter(0)
  y = f32[1,1,16] parameter(1)
  z = f32[1,#,16] parameter(2)
  c = f32[1,#,16] concatenate(y, x), dimensions={1}
  ROOT r = f32[1,#,16] add(c, z)
})",
     false},
    // What is joined is computed, is reduced, and is used itself.
    {"JoinedAndReduced", 40, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[3,@,16] parameter(0)
  y = f32[3,1,16] parameter(1)
  z = f32[3,2,16] parameter(2)
  t = f32[3,@,16] tanh(x)
  c = f32[3,$,16] concatenate(y, t, z), dimensions={1}
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  s = f32[3,16] reduce(c, zero), dimensions={1}, to_apply=add
  m = f32[3,16] reduce(c, low), dimensions={1}, to_apply=max
  u = f32[3,16] reduce(t, zero), dimensions={1}, to_apply=add
  v = f32[3,16] add(s, m)
  ROOT r = f32[3,16] multiply(u, v)
})",
     false},
    {"Padded", 40, HEDDLE_SUMS R"(
ENTRY e {
  x = f32[3,@,16] parameter(0)
  e = f32[3,@,16] tanh(x)
  seven = f32[] constant(7)
  p = f32[3,$,16] pad(e, seven), padding=0_0x1_2x0_0
  zero = f32[] constant(0)
  s = f32[3,16] reduce(p, zero), dimensions={1}, to_apply=add
  ROOT t = (f32[3,16], f32[3,$,16]) tuple(s, p)
})",
     false},
};

}  // namespace heddle
