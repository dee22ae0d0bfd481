// Attention and RotaryEmbedding (opset 23 on), decomposed. Heads that share a key and value are a
// free dimension of the query in the two dots: keys and values are not repeated.
#include <cmath>
#include <limits>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// [B,S,heads*D] as [B,heads,S,D]; a value of rank 4 already has this form.
Instr* split_heads(Op& op, size_t input, const char* heads_attr) {
  const Ints e = op.shape(input).extents();
  if (e.size() == 4) return op.in(input);
  const int64_t heads = op.int_attr(heads_attr, 0);
  if (e.size() != 3 || heads < 1 || e[2] % heads != 0)
    op.fail(
        "input {} is {} and {} is {}: wanted [batch,heads,sequence,width], or [batch,sequence,"
        "width of all heads]",
        input, to_string(op.shape(input)), heads_attr, heads);
  Instr* x = reshape(op, op.in(input), {e[0], e[1], heads, e[2] / heads});
  return op.b.transpose(x, {0, 2, 1, 3});
}

Instr* merge_heads(Op& op, Instr* x) {
  const Ints e = x->shape().extents();
  return reshape(op, op.b.transpose(x, {0, 2, 1, 3}), {e[0], e[2], e[1] * e[3]});
}

struct Sizes {
  int64_t batch = 0, heads = 0, queries = 0, width = 0, kv_heads = 0, keys = 0, value_width = 0;
  int64_t past = 0;
  Ints scores() const { return {batch, heads, queries, keys}; }
};

class Attention {
 public:
  explicit Attention(Op& op) : op_(op) {}
  Outputs run();

 private:
  void read_inputs();
  Instr* with_past(Instr* x, size_t past) const;
  Instr* scores() const;
  // Mask of the keys allowed for each query by position: pred of a shape that broadcasts to the
  // scores; null if all are.
  Instr* allowed();
  Instr* mask(Instr* x);
  Instr* softmax(Instr* x) const;
  Instr* weighted(Instr* weights) const;

  Op& op_;
  Sizes s_;
  Instr *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
  bool rows_may_be_empty_ = false;  // if a query has no allowed key, its row is zero
};

Instr* Attention::with_past(Instr* x, size_t past) const {
  if (!op_.has(past) || op_.shape(past).elems() == 0) return x;
  return op_.b.concatenate({op_.in(past), x}, 2);
}

void Attention::read_inputs() {
  q_ = split_heads(op_, 0, "q_num_heads");
  k_ = split_heads(op_, 1, "kv_num_heads");
  v_ = split_heads(op_, 2, "kv_num_heads");
  op_.ignore({"q_num_heads", "kv_num_heads"});
  if (op_.has(4) != op_.has(5)) op_.fail("past_key and past_value must be given together");
  if (op_.has(4) && (op_.rank(4) != 4 || op_.rank(5) != 4))
    op_.fail("past_key is {}, past_value {}: wanted rank 4", to_string(op_.shape(4)),
             to_string(op_.shape(5)));
  s_.past = op_.has(4) ? op_.shape(4).dim(2) : 0;
  k_ = with_past(k_, 4);
  v_ = with_past(v_, 5);
  op_.check_builder();
  const Ints q = q_->shape().extents(), k = k_->shape().extents(), v = v_->shape().extents();
  const bool fits = k[0] == q[0] && v[0] == q[0] && k[3] == q[3] && v[1] == k[1] && v[2] == k[2];
  if (!fits || k[1] < 1 || q[1] % k[1] != 0 || op_.type(0) != op_.type(1))
    op_.fail("Q, K and V are {}, {} and {} by head: they do not fit", to_string(q_->shape()),
             to_string(k_->shape()), to_string(v_->shape()));
  s_ = {q[0], q[1], q[2], q[3], k[1], k[2], v[3], s_.past};
  op_.check_extents(s_.scores());
}

// [B,heads,S,D] by [B,kv_heads,T,D] -> [B,heads,S,T], scaled and capped.
Instr* Attention::scores() const {
  const double scale = op_.float_attr("scale", 1 / std::sqrt(static_cast<double>(s_.width)));
  const int64_t group = s_.heads / s_.kv_heads;
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = {0, 1};
  attrs.rhs_contracting_dims = {3};
  attrs.lhs_contracting_dims = {group == 1 ? 3 : 4};
  Instr* q = q_;
  if (group != 1) q = reshape(op_, q, {s_.batch, s_.kv_heads, group, s_.queries, s_.width});
  Instr* x = op_.b.dot(q, k_, std::move(attrs));
  x = binary(op_, Opcode::multiply, reshape(op_, x, s_.scores()), scale);
  return x;
}

Instr* Attention::allowed() {
  const bool causal = op_.int_attr("is_causal", 0) != 0;
  const int64_t left = op_.int_attr("left_window_size", -1);
  const int64_t right = op_.int_attr("right_window_size", -1);
  Instr* result = nullptr;
  const auto also = [&](Instr* condition) {
    result = result == nullptr ? condition : binary(op_, Opcode::and_, result, condition);
  };
  const Ints matrix{s_.queries, s_.keys};
  Instr* key = iota(op_, Type::s64, matrix, 1);
  // The absolute position of each query: [S,T], or [B,1,S,T] if it differs between batches.
  Instr* position = iota(op_, Type::s64, matrix, 0);
  if (s_.past != 0) position = binary(op_, Opcode::add, position, s_.past);
  if (op_.has(6)) {
    if (op_.rank(6) != 1 || op_.shape(6).dim(0) != s_.batch)
      op_.fail("nonpad_kv_seqlen is {}, wanted [{}]", to_string(op_.shape(6)), s_.batch);
    Instr* valid = reshape(op_, op_.b.convert(op_.in(6), Type::s64), {s_.batch, 1, 1, 1});
    also(compare(op_, Direction::lt, key, valid));
    position = binary(op_, Opcode::add, position, binary(op_, Opcode::subtract, valid, s_.queries));
    rows_may_be_empty_ = true;
  }
  if (causal) also(compare(op_, Direction::le, key, position));
  const int64_t most = op_.limits().value_elems;
  if (left >= 0) {
    also(compare(op_, Direction::ge, key,
                 binary(op_, Opcode::subtract, position, std::min(left, most))));
    rows_may_be_empty_ = true;
  }
  if (right >= 0)
    also(compare(op_, Direction::le, key,
                 binary(op_, Opcode::add, position, std::min(right, most))));
  return result;
}

// The mask's last dimension may be shorter than the keys: missing positions are masked.
Instr* Attention::mask(Instr* x) {
  const double nothing = -std::numeric_limits<double>::infinity();
  if (Instr* condition = allowed())
    x = select(op_, condition, x, op_.b.scalar(x->shape().type(), nothing));
  if (!op_.has(3)) return x;
  const bool boolean = op_.type(3) == Type::pred;
  if (!boolean && op_.type(3) != op_.type(0))
    op_.fail("attn_mask is {}, wanted bool or the type of Q", to_string(op_.shape(3)));
  rows_may_be_empty_ = true;
  Instr* given = op_.in(3);
  const int64_t rank = op_.rank(3), length = rank > 0 ? op_.shape(3).dim(rank - 1) : 1;
  if (length > 1 && length < s_.keys) {
    Ints low(static_cast<size_t>(rank), 0), high = low;
    high.back() = s_.keys - length;
    given = op_.b.pad(given, op_.b.scalar(op_.type(3), boolean ? 0 : nothing), low, high, {});
  }
  given = broadcast_to(op_, given, s_.scores());
  if (!boolean) return op_.b.binary(Opcode::add, x, op_.b.convert(given, x->shape().type()));
  return select(op_, given, x, op_.b.scalar(x->shape().type(), nothing));
}

Instr* Attention::softmax(Instr* x) const {
  const Ints extents = s_.scores();
  const auto one_if = [&](Instr* value, double bad, double instead) {
    if (!rows_may_be_empty_) return value;
    return select(op_, compare(op_, Direction::eq, value, bad),
                  op_.b.scalar(value->shape().type(), instead), value);
  };
  Instr* largest =
      one_if(op_.b.reduce(Opcode::maximum, x, {3}), -std::numeric_limits<double>::infinity(), 0);
  x = op_.b.binary(Opcode::subtract, x, broadcast_back(op_, largest, extents, {3}));
  x = op_.b.unary(Opcode::exponential, x);
  Instr* total = one_if(op_.b.reduce(Opcode::add, x, {3}), 0, 1);
  return op_.b.binary(Opcode::divide, x, broadcast_back(op_, total, extents, {3}));
}

// [B,heads,S,T] by [B,kv_heads,T,Dv] -> [B,heads,S,Dv]
Instr* Attention::weighted(Instr* weights) const {
  const int64_t group = s_.heads / s_.kv_heads;
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = {0, 1};
  attrs.rhs_contracting_dims = {2};
  attrs.lhs_contracting_dims = {group == 1 ? 3 : 4};
  if (group != 1)
    weights = reshape(op_, weights, {s_.batch, s_.kv_heads, group, s_.queries, s_.keys});
  Instr* y = op_.b.dot(weights, v_, std::move(attrs));
  return reshape(op_, y, {s_.batch, s_.heads, s_.queries, s_.value_width});
}

Outputs Attention::run() {
  op_.check_float(0);
  const int64_t mode = op_.int_attr("qk_matmul_output_mode", 0);
  const double cap = op_.float_attr("softcap", 0);
  op_.ignore({"softmax_precision"});  // f32 at least
  if (mode < 0 || mode > 3) op_.fail("qk_matmul_output_mode is {}, wanted 0 to 3", mode);
  const Type type = op_.type(0), compute = compute_type(type);
  read_inputs();
  Instr* x = op_.b.convert(scores(), compute);
  Instr* shown = x;
  if (cap != 0) {
    x = op_.b.unary(Opcode::tanh, binary(op_, Opcode::divide, x, cap));
    x = binary(op_, Opcode::multiply, x, cap);
  }
  if (mode == 1) shown = x;
  x = mask(x);
  if (mode == 2) shown = x;
  x = softmax(x);
  if (mode == 3) shown = x;
  Instr* y = weighted(op_.b.convert(x, type));
  if (op_.rank(0) == 3) y = merge_heads(op_, y);
  return {y, k_, v_, op_.b.convert(shown, type)};
}

Outputs attention(Op& op) { return Attention(op).run(); }

// x[..., from:to:step] of the last dimension.
Instr* last_slice(Op& op, Instr* x, int64_t from, int64_t to, int64_t step = 1) {
  const Ints extents = x->shape().extents();
  Ints starts(extents.size(), 0), limits = extents, steps(extents.size(), 1);
  starts.back() = from;
  limits.back() = to;
  steps.back() = step;
  return op.b.slice(x, starts, limits, steps);
}

// cos or sin for every position, [B,S,half], broadcast to [B,heads,S,half].
Instr* rotation(Op& op, size_t input, const Ints& extents) {
  const Ints wanted{extents[0], extents[2], extents[3]};
  Instr* cache = op.in(input);
  if (op.has(3)) {
    if (op.rank(input) != 2 || !tensor::is_integer(op.type(3)) || op.shape(input).dim(0) == 0)
      op.fail("caches are {} and position_ids {}: wanted [positions,half] and integers",
              to_string(op.shape(input)), to_string(op.shape(3)));
    op.demand(3, {{0, op.shape(input).dim(0) - 1}});
    cache = op.b.take(cache, op.in(3), 0);
    op.check_builder();
  }
  if (cache->shape().extents() != wanted)
    op.fail("cos_cache or sin_cache is {}, wanted [{}] for each token", to_string(cache->shape()),
            fmt::join(wanted, ","));
  return op.b.broadcast(cache, extents, {0, 2, 3});
}

Outputs rotary_embedding(Op& op) {
  op.check_float(0);
  const bool interleaved = op.int_attr("interleaved", 0) != 0;
  Instr* x = split_heads(op, 0, "num_heads");
  op.ignore({"num_heads"});
  op.check_builder();
  const Ints e = x->shape().extents();
  int64_t width = op.int_attr("rotary_embedding_dim", 0);
  if (width == 0) width = e[3];
  if (width < 2 || width > e[3] || width % 2 != 0)
    op.fail("rotary_embedding_dim is {} of {}; wanted an even one", width, e[3]);
  const int64_t half = width / 2;
  Ints extents = e;
  extents[3] = half;
  Instr* first = interleaved ? last_slice(op, x, 0, width, 2) : last_slice(op, x, 0, half);
  Instr* second = interleaved ? last_slice(op, x, 1, width, 2) : last_slice(op, x, half, width);
  Instr* cosine = rotation(op, 1, extents);
  Instr* sine = rotation(op, 2, extents);
  const auto times = [&](Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); };
  Instr* real = op.b.binary(Opcode::subtract, times(cosine, first), times(sine, second));
  Instr* imaginary = op.b.binary(Opcode::add, times(sine, first), times(cosine, second));
  Instr* rotated;
  if (interleaved) {
    Ints column = extents, merged = extents;
    column.push_back(1);
    merged[3] = width;
    rotated = op.b.concatenate({reshape(op, real, column), reshape(op, imaginary, column)}, 4);
    rotated = reshape(op, rotated, merged);
  } else {
    rotated = op.b.concatenate({real, imaginary}, 3);
  }
  if (width < e[3]) rotated = op.b.concatenate({rotated, last_slice(op, x, width, e[3])}, 3);
  return {op.rank(0) == 3 ? merge_heads(op, rotated) : rotated};
}

constexpr OpEntry kOps[] = {
    {"Attention", 3, 7, attention},
    {"RotaryEmbedding", 3, 4, rotary_embedding},
};

}  // namespace

std::span<const OpEntry> attention_ops() { return kOps; }

}  // namespace heddle::import
