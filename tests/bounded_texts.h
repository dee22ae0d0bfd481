// The longer texts of bounded_cases.h.
#pragma once

namespace heddle {

#define HEDDLE_SUMS                                                                  \
  "HloModule m\n"                                                                    \
  "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n" \
  "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"

const char kEmbedding[] = HEDDLE_SUMS R"(
ENTRY e {
  t = f32[30,48] parameter(0)
  j = s64[3,@] parameter(1)
  p = f32[@,48] parameter(2)
  thirty = s64[] constant(30)
  thirties = s64[3,@] broadcast(thirty), dimensions={}
  shifted = s64[3,@] add(j, thirties)
  z = s64[] constant(0)
  zs = s64[3,@] broadcast(z), dimensions={}
  below = pred[3,@] compare(j, zs), direction=LT
  i = s64[3,@] select(below, shifted, j)
  g = f32[3,@,48] gather(t, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,48}
  ps = f32[3,@,48] broadcast(p), dimensions={1,2}
  x = f32[3,@,48] add(g, ps)
  zero = f32[] constant(0)
  count = f32[] constant(48)
  counts = f32[3,@] broadcast(count), dimensions={}
  sum = f32[3,@] reduce(x, zero), dimensions={2}, to_apply=add
  mean = f32[3,@] divide(sum, counts)
  means = f32[3,@,48] broadcast(mean), dimensions={0,1}
  d = f32[3,@,48] subtract(x, means)
  q = f32[3,@,48] multiply(d, d)
  v = f32[3,@] reduce(q, zero), dimensions={2}, to_apply=add
  root = f32[3,@] rsqrt(v)
  roots = f32[3,@,48] broadcast(root), dimensions={0,1}
  r = f32[3,@,48] multiply(d, roots)
  m = s64[3,@] parameter(3)
  c = pred[3,@] compare(m, zs), direction=NE
  n = f32[3,@] convert(c)
  ROOT o = (f32[3,@,48], f32[3,@]) tuple(r, n)
})";

// As many rows at the bound as one tile of a product has.
const char kFewRows[] = R"(HloModule m
ENTRY e {
  x = f32[@,64] parameter(0)
  w1 = f32[64,96] parameter(1)
  w2 = f32[96,64] parameter(2)
  a = f32[@,96] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[@,96] tanh(a)
  b = f32[@,64] dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[@,64] add(b, x)
})";

const char kChain[] = HEDDLE_SUMS R"(
ENTRY e {
  x = f32[3,@,48] parameter(0)
  w1 = f32[48,48] parameter(1)
  w2 = f32[48,96] parameter(2)
  w3 = f32[96,48] parameter(3)
  zero = f32[] constant(0)
  a = f32[3,@,48] dot(x, w1), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  y = f32[3,@,48] add(a, x)
  sum = f32[3,@] reduce(y, zero), dimensions={2}, to_apply=add
  sums = f32[3,@,48] broadcast(sum), dimensions={0,1}
  d = f32[3,@,48] subtract(y, sums)
  b = f32[3,@,96] dot(d, w2), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  t = f32[3,@,96] tanh(b)
  c = f32[3,@,48] dot(t, w3), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  z = f32[3,@,48] add(c, d)
  sum2 = f32[3,@] reduce(z, zero), dimensions={2}, to_apply=add
  sums2 = f32[3,@,48] broadcast(sum2), dimensions={0,1}
  ROOT r = f32[3,@,48] subtract(z, sums2)
})";

const char kBatchedAttention[] = HEDDLE_SUMS R"(
ENTRY e {
  x = f32[3,@,64] parameter(0)
  wq = f32[64,64] parameter(1)
  wk = f32[64,64] parameter(2)
  wv = f32[64,64] parameter(3)
  q0 = f32[3,@,64] dot(x, wq), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  k0 = f32[3,@,64] dot(x, wk), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  v0 = f32[3,@,64] dot(x, wv), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  q1 = f32[3,@,4,16] reshape(q0)
  k1 = f32[3,@,4,16] reshape(k0)
  v1 = f32[3,@,4,16] reshape(v0)
  q = f32[3,4,@,16] transpose(q1), dimensions={0,2,1,3}
  k = f32[3,4,@,16] transpose(k1), dimensions={0,2,1,3}
  v = f32[3,4,@,16] transpose(v1), dimensions={0,2,1,3}
  s = f32[3,4,@,@] dot(q, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
  most = f32[3,4,@] reduce(s, low), dimensions={3}, to_apply=max
  mosts = f32[3,4,@,@] broadcast(most), dimensions={0,1,2}
  d = f32[3,4,@,@] subtract(s, mosts)
  e = f32[3,4,@,@] exponential(d)
  sum = f32[3,4,@] reduce(e, zero), dimensions={3}, to_apply=add
  sums = f32[3,4,@,@] broadcast(sum), dimensions={0,1,2}
  p = f32[3,4,@,@] divide(e, sums)
  o = f32[3,4,@,16] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
  o1 = f32[3,@,4,16] transpose(o), dimensions={0,2,1,3}
  o2 = f32[3,@,64] reshape(o1)
  ROOT r = f32[3,@,64] add(o2, x)
})";

// One token: its key and value behind those of the tokens before, and attention over all of them.
const char kGrowingCache[] = HEDDLE_SUMS R"(
ENTRY e {
  x = f32[1,1,64] parameter(0)
  pk = f32[1,4,@,16] parameter(1)
  pv = f32[1,4,@,16] parameter(2)
  seen = s64[1,#] parameter(3)
  wq = f32[64,64] parameter(4)
  wk = f32[64,64] parameter(5)
  wv = f32[64,64] parameter(6)
  q0 = f32[1,1,64] dot(x, wq), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  k0 = f32[1,1,64] dot(x, wk), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  v0 = f32[1,1,64] dot(x, wv), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  q = f32[1,4,1,16] reshape(q0)
  k1 = f32[1,4,1,16] reshape(k0)
  v1 = f32[1,4,1,16] reshape(v0)
  k = f32[1,4,#,16] concatenate(pk, k1), dimensions={2}
  v = f32[1,4,#,16] concatenate(pv, v1), dimensions={2}
  s0 = f32[1,4,1,#] dot(q, k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  nought = s64[] constant(0)
  noughts = s64[1,#] broadcast(nought), dimensions={}
  is = pred[1,#] compare(seen, noughts), direction=NE
  zero = f32[] constant(0)
  zeros = f32[1,#] broadcast(zero), dimensions={}
  lowest = f32[] constant(-3.4028235e+38)
  lows = f32[1,#] broadcast(lowest), dimensions={}
  m0 = f32[1,#] select(is, zeros, lows)
  m = f32[1,4,1,#] broadcast(m0), dimensions={0,3}
  s = f32[1,4,1,#] add(s0, m)
  low = f32[] constant(-inf)
  most = f32[1,4,1] reduce(s, low), dimensions={3}, to_apply=max
  mosts = f32[1,4,1,#] broadcast(most), dimensions={0,1,2}
  d = f32[1,4,1,#] subtract(s, mosts)
  e = f32[1,4,1,#] exponential(d)
  sum = f32[1,4,1] reduce(e, zero), dimensions={3}, to_apply=add
  sums = f32[1,4,1,#] broadcast(sum), dimensions={0,1,2}
  p = f32[1,4,1,#] divide(e, sums)
  o = f32[1,4,1,16] dot(p, v), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={2}
  o1 = f32[1,1,64] reshape(o)
  r = f32[1,1,64] add(o1, x)
  ROOT t = (f32[1,1,64], f32[1,4,#,16], f32[1,4,#,16]) tuple(r, k, v)
})";

}  // namespace heddle
