// Attention in the form of ONNX Runtime's optimiser (com.microsoft): decomposed into dots, masks
// and a softmax. Heads that share a key and value are a free dimension of the query: keys and
// values are not repeated.
#include <cmath>
#include <limits>

#include "import/onnx_contrib.h"
#include "import/onnx_ops.h"
#include "import/onnx_quantize.h"

namespace heddle::import::contrib {
namespace {

hlo::DotAttrs batched(int64_t left, int64_t right) {
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = {0, 1};
  attrs.lhs_contracting_dims = {left};
  attrs.rhs_contracting_dims = {right};
  return attrs;
}

}  // namespace

Instr* attend(Op& op, const Core& core) {
  const Ints q = core.q->shape().extents(), k = core.k->shape().extents(),
             v = core.v->shape().extents();
  if (k[0] != q[0] || v[0] != q[0] || k[3] != q[3] || v[1] != k[1] || v[2] != k[2] || k[1] < 1 ||
      q[1] % k[1] != 0)
    op.fail("Q, K and V are [{}], [{}] and [{}] by head: they do not fit", fmt::join(q, ","),
            fmt::join(k, ","), fmt::join(v, ","));
  const Ints scores{q[0], q[1], q[2], k[2]};
  op.check_extents(scores);
  const int64_t group = q[1] / k[1];
  const Type type = core.q->shape().type(), compute = compute_type(type);
  const auto grouped = [&](Instr* x, const Ints& e) {
    return group == 1 ? x : reshape(op, x, {e[0], k[1], group, e[2], e[3]});
  };
  Instr* x = op.b.dot(grouped(core.q, q), core.k, batched(group == 1 ? 3 : 4, 3));
  const double scale = core.scale != 0 ? core.scale : 1 / std::sqrt(static_cast<double>(q[3]));
  x = binary(op, Opcode::multiply, op.b.convert(reshape(op, x, scores), compute), scale);
  if (core.cap != 0) {
    x = op.b.unary(Opcode::tanh, binary(op, Opcode::divide, x, core.cap));
    x = binary(op, Opcode::multiply, x, core.cap);
  }
  if (core.added != nullptr)
    x = op.b.binary(Opcode::add, x, broadcast_to(op, op.b.convert(core.added, compute), scores));
  if (core.allowed != nullptr)
    x = select(op, core.allowed, x,
               op.b.scalar(compute, -static_cast<double>(std::numeric_limits<float>::max())));
  Instr* largest = op.b.reduce(Opcode::maximum, x, {3});
  Instr* sink = nullptr;
  if (core.sink != nullptr) {
    sink = op.b.broadcast(op.b.convert(core.sink, compute), {q[0], q[1], q[2]}, {1});
    largest = op.b.binary(Opcode::maximum, largest, sink);
  }
  x = op.b.unary(Opcode::exponential,
                 op.b.binary(Opcode::subtract, x, broadcast_back(op, largest, scores, {3})));
  Instr* total = op.b.reduce(Opcode::add, x, {3});
  if (sink != nullptr) {
    sink = op.b.unary(Opcode::exponential, op.b.binary(Opcode::subtract, sink, largest));
    total = op.b.binary(Opcode::add, total, sink);
  }
  x = op.b.binary(Opcode::divide, x, broadcast_back(op, total, scores, {3}));
  Instr* y =
      op.b.dot(grouped(op.b.convert(x, type), scores), core.v, batched(group == 1 ? 3 : 4, 2));
  y = op.b.transpose(reshape(op, y, {q[0], q[1], q[2], v[3]}), {0, 2, 1, 3});
  return reshape(op, y, {q[0], q[2], q[1] * v[3]});
}

Instr* split_heads(Op& op, Instr* x, int64_t heads, const char* what) {
  const Ints e = x->shape().extents();
  if (e.size() != 3 || heads < 1 || e[2] % heads != 0)
    op.fail("{} is {}, wanted [batch,sequence,width of {} heads]", what, to_string(x->shape()),
            heads);
  return op.b.transpose(reshape(op, x, {e[0], e[1], heads, e[2] / heads}), {0, 2, 1, 3});
}

Instr* columns(Op& op, Instr* x, int64_t from, int64_t to) {
  const Ints extents = x->shape().extents();
  Ints starts(extents.size(), 0), limits = extents;
  starts.back() = from;
  limits.back() = to;
  return from == 0 && to == extents.back() ? x : op.b.slice(x, starts, limits, {});
}

Instr* both(Op& op, Instr* a, Instr* b) {
  return a == nullptr ? b : b == nullptr ? a : binary(op, Opcode::and_, a, b);
}

void refuse(Op& op, size_t input, const char* name) {
  if (op.has(input)) op.fail("input {} ({}) is not supported", input, name);
}

}  // namespace heddle::import::contrib

namespace heddle::import {

using namespace contrib;  // NOLINT: of this file

namespace {

Instr* with_bias(Op& op, Instr* x, size_t bias, int64_t from) {
  if (!op.has(bias)) return x;
  const int64_t width = x->shape().dim(x->shape().rank() - 1);
  if (op.rank(bias) != 1 || op.shape(bias).dim(0) < from + width || op.type(bias) != op.type(0))
    op.fail("the bias is {}, wanted at least [{}]", to_string(op.shape(bias)), from + width);
  Instr* mine = op.b.slice(op.in(bias), {from}, {from + width}, {});
  return op.b.binary(Opcode::add, x,
                     broadcast_along(op, mine, x->shape().extents(), x->shape().rank() - 1));
}

Instr* behind(Op& op, Instr* past, Instr* x) {
  return past == nullptr || past->shape().elems() == 0 ? x : op.b.concatenate({past, x}, 2);
}

// key <= query, where the first query is at position `past`: [S,T].
Instr* causal(Op& op, int64_t queries, int64_t keys, int64_t past) {
  Instr* row = iota(op, Type::s64, {queries, keys}, 0);
  if (past != 0) row = binary(op, Opcode::add, row, past);
  return compare(op, Direction::le, iota(op, Type::s64, {queries, keys}, 1), row);
}

// A mask of keys as an additive mask: 0, or `filter` if a key is masked. [B]: the number of valid
// keys; [2B]: the ends, then the starts; [B,T] and [B,S,T]: 0 is masked.
Instr* mask_of_keys(Op& op, size_t input, const Ints& scores, double filter, bool ends) {
  if (!op.has(input)) return nullptr;
  const Ints e = op.shape(input).extents();
  const int64_t batch = scores[0], keys = scores[3];
  Instr* mask = op.in(input);
  Instr* counts = nullptr;  // pred
  if (!tensor::is_integer(op.type(input)) && op.type(input) != Type::pred)
    op.fail("the mask is {}, wanted integers", to_string(op.shape(input)));
  if (e == Ints{batch} || (ends && e == Ints{2 * batch})) {
    Instr* key = iota(op, op.type(input), {batch, 1, 1, keys}, 3);
    const auto part = [&](int64_t from) {
      return reshape(op, op.b.slice(mask, {from}, {from + batch}, {}), {batch, 1, 1, 1});
    };
    counts = compare(op, Direction::lt, key, part(0));
    if (e[0] != batch) counts = both(op, counts, compare(op, Direction::ge, key, part(batch)));
  } else if (e == Ints{batch, keys}) {
    counts = reshape(op, compare(op, Direction::ne, mask, 0), {batch, 1, 1, keys});
  } else if (e == Ints{batch, scores[2], keys}) {
    counts = reshape(op, compare(op, Direction::ne, mask, 0), {batch, 1, scores[2], keys});
  } else {
    op.fail("the mask is {} for {} batches, {} queries and {} keys", to_string(op.shape(input)),
            batch, scores[2], keys);
  }
  const Type type = tensor::is_float(op.type(0)) ? compute_type(op.type(0)) : Type::f32;
  return select(op, counts, op.b.scalar(type, 0), op.b.scalar(type, filter));
}

Instr* sum_of(Op& op, Instr* a, Instr* b) {
  return a == nullptr ? b : b == nullptr ? a : binary(op, Opcode::add, a, b);
}

// A bias of the scores, [B or 1, N or 1, S, T].
Instr* score_bias(Op& op, size_t input, const Ints& scores) {
  if (!op.has(input)) return nullptr;
  const Ints e = op.shape(input).extents();
  bool fits = e.size() == 4;
  for (size_t d = 0; fits && d < 4; ++d) fits = e[d] == scores[d] || e[d] == 1;
  if (!fits)
    op.fail("the attention bias is {}, wanted one of [{}]", to_string(op.shape(input)),
            fmt::join(scores, ","));
  return op.b.convert(op.in(input), compute_type(op.type(0)));
}

// ---- Attention ----

// Input numbers; kNone: absent.
constexpr size_t kNone = 1 << 20;
struct AttentionInputs {
  size_t mask = 3, past = 4, bias = 5;
};

// For queries, keys and values side by side, [B,S,3 widths].
Outputs attention_of(Op& op, Instr* projected, const AttentionInputs& inputs) {
  const int64_t heads = op.int_attr("num_heads", 0);
  const double filter = op.float_attr("mask_filter_value", -10000);
  Core core;
  core.scale = op.float_attr("scale", 0);
  if (op.int_attr("do_rotary", 0) != 0) op.fail("do_rotary is 1; wanted 0");
  if (op.int_attr("past_present_share_buffer", 0) != 0)
    op.fail("past_present_share_buffer is 1; wanted 0");
  op.ignore({"rotary_embedding_dim"});
  op.check_builder();
  const int64_t all = projected->shape().dim(2);
  const Ints widths = op.ints_attr("qkv_hidden_sizes", {all / 3, all / 3, all - all / 3 * 2});
  if (widths.size() != 3 || widths[0] < 1 || widths[2] < 1 || widths[0] != widths[1] ||
      widths[0] + widths[1] + widths[2] != all)
    op.fail("widths of Q, K and V are [{}], of {} columns", fmt::join(widths, ","), all);
  core.q = split_heads(op, columns(op, projected, 0, widths[0]), heads, "Q");
  core.k = split_heads(op, columns(op, projected, widths[0], 2 * widths[0]), heads, "K");
  core.v = split_heads(op, columns(op, projected, 2 * widths[0], all), heads, "V");
  int64_t past = 0;
  if (op.has(inputs.past)) {
    const Ints e = op.shape(inputs.past).extents();
    const Ints k = core.k->shape().extents();
    if (e.size() != 5 || e[0] != 2 || e[1] != k[0] || e[2] != k[1] || e[4] != k[3] ||
        widths[2] != widths[0])
      op.fail("past is {}", to_string(op.shape(inputs.past)));
    past = e[3];
    const auto half = [&](int64_t i) {
      Instr* x =
          op.b.slice(op.in(inputs.past), {i, 0, 0, 0, 0}, {i + 1, e[1], e[2], e[3], e[4]}, {});
      return reshape(op, x, {e[1], e[2], e[3], e[4]});
    };
    core.k = behind(op, half(0), core.k);
    core.v = behind(op, half(1), core.v);
  }
  const Ints q = core.q->shape().extents();
  const int64_t keys = core.k->shape().dim(2);
  const Ints scores{q[0], q[1], q[2], keys};
  core.added = sum_of(op, mask_of_keys(op, inputs.mask, scores, filter, true),
                      score_bias(op, inputs.bias, scores));
  if (op.int_attr("unidirectional", 0) != 0) core.allowed = causal(op, q[2], keys, past);
  Instr* y = attend(op, core);
  if (!op.wants(1)) return {y};
  Ints one = core.k->shape().extents();
  one.insert(one.begin(), 1);
  if (widths[2] != widths[0]) op.fail("present wants keys and values of one width");
  return {y, op.b.concatenate({reshape(op, core.k, one), reshape(op, core.v, one)}, 0)};
}

// input [B,S,H], weights [H,3 widths], bias, mask, past [2,B,N,P,D], attention bias.
Outputs attention(Op& op) {
  op.check_float(0);
  refuse(op, 6, "past_sequence_length");
  if (op.rank(0) != 3 || op.rank(1) != 2 || op.type(1) != op.type(0))
    op.fail("input is {}, weights {}", to_string(op.shape(0)), to_string(op.shape(1)));
  return attention_of(op, with_bias(op, matrix_product(op, op.in(0), op.in(1)), 2, 0), {});
}

// The 8-bit form: input, weights, bias (f32), the scales of both, mask, their zero points, past.
Outputs quantised_attention(Op& op) {
  if (op.rank(0) != 3 || op.rank(1) != 2 || op.rank(2) != 1 || op.type(2) != Type::f32)
    op.fail("input is {}, weights {}, bias {}", to_string(op.shape(0)), to_string(op.shape(1)),
            to_string(op.shape(2)));
  const auto scaled = [&](size_t input, size_t scale, size_t zero, int64_t along) {
    Instr* x = op.b.convert(centred(op, input, zero, along), Type::f32);
    Instr* factor = spread(op, scale_input(op, scale, Type::f32), x->shape().extents(), along, 0);
    return op.b.binary(Opcode::multiply, x, factor);
  };
  Instr* y = matrix_product(op, scaled(0, 3, 6, row_dim(op, 0)), scaled(1, 4, 7, 1));
  op.check_builder();
  y = binary(op, Opcode::add, y, op.in(2));
  return attention_of(op, y, {.mask = 5, .past = 8, .bias = kNone});
}

// ---- MultiHeadAttention ----

// [B,T,N,parts,D]: returns part `i` as [B,N,T,D].
Instr* packed_part(Op& op, size_t input, int64_t i) {
  const Ints e = op.shape(input).extents();
  Instr* x = op.b.slice(op.in(input), {0, 0, 0, i, 0}, {e[0], e[1], e[2], i + 1, e[4]}, {});
  return op.b.transpose(reshape(op, x, {e[0], e[1], e[2], e[4]}), {0, 2, 1, 3});
}

// query, key, value, bias, mask of keys, attention bias, past key, past value.
Outputs multi_head_attention(Op& op) {
  op.check_float(0);
  const int64_t heads = op.int_attr("num_heads", 0);
  const double filter = op.float_attr("mask_filter_value", -10000);
  Core core;
  core.scale = op.float_attr("scale", 0);
  refuse(op, 8, "past_sequence_length");
  refuse(op, 9, "cache_indirection");
  const int64_t q_rank = op.rank(0), k_rank = op.has(1) ? op.rank(1) : 0;
  const bool packed = q_rank == 5 || k_rank == 5;
  if (packed && op.has(3)) op.fail("a bias beside packed keys is not supported");
  if (q_rank == 5 && !op.has(1) && op.shape(0).dim(3) == 3 && op.shape(0).dim(2) == heads) {
    core.q = packed_part(op, 0, 0);
    core.k = packed_part(op, 0, 1);
    core.v = packed_part(op, 0, 2);
  } else if (q_rank == 3 && k_rank == 5 && op.shape(1).dim(3) == 2 && op.shape(1).dim(2) == heads) {
    core.q = split_heads(op, op.in(0), heads, "query");
    core.k = packed_part(op, 1, 0);
    core.v = packed_part(op, 1, 1);
  } else if (q_rank == 3 && op.has(1) && op.has(2) && (k_rank == 3 || k_rank == 4)) {
    const int64_t width = op.shape(0).dim(2);
    core.q = split_heads(op, with_bias(op, op.in(0), 3, 0), heads, "query");
    const auto other = [&](size_t i, int64_t from, const char* what) {
      if (op.rank(i) == 4) return op.in(i);
      return split_heads(op, with_bias(op, op.in(i), 3, from), heads, what);
    };
    core.k = other(1, width, "key");
    core.v = other(2, 2 * width, "value");
  } else {
    op.fail(
        "query is {}, key {}: wanted [batch,sequence,width], or heads packed as ONNX Runtime "
        "has them",
        to_string(op.shape(0)), op.has(1) ? to_string(op.shape(1)) : "missing");
  }
  op.check_builder();
  int64_t past = 0;
  if (op.has(6) != op.has(7)) op.fail("past_key and past_value must be given together");
  if (op.has(6)) {
    if (op.rank(6) != 4 || op.rank(7) != 4)
      op.fail("past_key is {}, past_value {}", to_string(op.shape(6)), to_string(op.shape(7)));
    past = op.shape(6).dim(2);
    core.k = behind(op, op.in(6), core.k);
    core.v = behind(op, op.in(7), core.v);
    op.check_builder();
  }
  const Ints q = core.q->shape().extents();
  const Ints scores{q[0], q[1], q[2], core.k->shape().dim(2)};
  core.added = sum_of(op, mask_of_keys(op, 4, scores, filter, false), score_bias(op, 5, scores));
  if (op.int_attr("unidirectional", 0) != 0) core.allowed = causal(op, q[2], scores[3], past);
  if (op.wants(3)) op.fail("output 3 (qk) is not supported");
  return {attend(op, core), core.k, core.v};
}

// ---- RelativePositionBias ----

// T5's bucket for a distance from query to key, out of `buckets`: near distances have one each, the
// others share logarithmic ones up to `most`.
int64_t bucket_of(int64_t distance, int64_t buckets, int64_t most, bool both_ways) {
  int64_t first = 0;
  if (both_ways) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(0, -distance);
  }
  const int64_t near = buckets / 2;
  if (distance < near) return first + distance;
  const auto ratio = [&](int64_t n) {
    return std::log(static_cast<float>(n) / static_cast<float>(near));
  };
  const float share = ratio(distance) / ratio(most) * static_cast<float>(buckets - near);
  return first + std::min(near + static_cast<int64_t>(share), buckets - 1);
}

// The table [buckets,N], the number of queries, the number of keys: [1,N,S,T].
Outputs relative_position_bias(Op& op) {
  op.check_float(0);
  const int64_t queries = op.known_int(1, "query_length"), keys = op.known_int(2, "key_length");
  const int64_t most = op.int_attr("max_distance", 0);
  const bool both_ways = op.int_attr("is_bidirectional", 0) != 0;
  if (op.rank(0) != 2) op.fail("bias_table is {}", to_string(op.shape(0)));
  const int64_t buckets = op.shape(0).dim(0), heads = op.shape(0).dim(1);
  if (buckets < (both_ways ? 4 : 2) || most <= buckets / (both_ways ? 4 : 2))
    op.fail("max_distance is {} for {} buckets", most, buckets);
  if (queries < 1 || keys < 1) op.fail("{} queries and {} keys", queries, keys);
  op.check_extents({1, heads, queries, keys});
  Ints all;  // by distance
  for (int64_t i = 1 - queries; i < keys; ++i)
    all.push_back(bucket_of(i, buckets, most, both_ways));
  Instr* by_distance = op.b.take(op.in(0), op.b.constant(ints_literal(all)), 0);
  const Ints place{queries, keys};
  Instr* distance =
      op.b.binary(Opcode::subtract, iota(op, Type::s64, place, 1), iota(op, Type::s64, place, 0));
  Instr* y = op.b.take(by_distance, binary(op, Opcode::add, distance, queries - 1), 0);
  return {reshape(op, op.b.transpose(y, {2, 0, 1}), {1, heads, queries, keys})};
}

constexpr OpEntry kOps[] = {
    {"com.microsoft.Attention", 2, 7, attention},
    {"com.microsoft.MultiHeadAttention", 1, 10, multi_head_attention},
    {"com.microsoft.QAttention", 5, 9, quantised_attention},
    {"com.microsoft.RelativePositionBias", 3, 3, relative_position_bias},
};

}  // namespace

std::span<const OpEntry> contrib_attention_ops() { return kOps; }

}  // namespace heddle::import
