// RotaryEmbedding and GroupQueryAttention of com.microsoft, as ONNX Runtime's model builder exports
// decoders: a cache that may be longer than the sequences, which have different lengths.
#include "import/onnx_contrib.h"
#include "import/onnx_ops.h"

namespace heddle::import {

using namespace contrib;  // NOLINT: of this file

namespace {

// ---- rotation ----

// x [B,N,S,D] by tables [positions,half]; positions: s64[B,S], which must be in range of the tables
// if they are an input (`given`).
Instr* rotate(Op& op, Instr* x, size_t cosines, size_t sines, Instr* positions, bool given,
              bool interleaved) {
  const Ints e = x->shape().extents();
  const auto table = [&](size_t i) {
    if (op.rank(i) != 2 || op.shape(i).dim(0) == 0 || 2 * op.shape(i).dim(1) > e[3])
      op.fail("input {} is {}, wanted [positions,half of {} or less]", i, to_string(op.shape(i)),
              e[3]);
    if (given) op.demand(positions, {{0, op.shape(i).dim(0) - 1}});
    Instr* rows = op.b.take(op.in(i), positions, 0);
    return op.b.broadcast(rows, {e[0], e[1], e[2], op.shape(i).dim(1)}, {0, 2, 3});
  };
  Instr *cosine = table(cosines), *sine = table(sines);
  op.check_builder();
  const int64_t half = cosine->shape().dim(3), width = 2 * half;
  const auto part = [&](int64_t from, int64_t to, int64_t step) {
    return op.b.slice(x, {0, 0, 0, from}, {e[0], e[1], e[2], to}, {1, 1, 1, step});
  };
  Instr* first = interleaved ? part(0, width, 2) : part(0, half, 1);
  Instr* second = interleaved ? part(1, width, 2) : part(half, width, 1);
  const auto times = [&](Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); };
  Instr* real = op.b.binary(Opcode::subtract, times(cosine, first), times(sine, second));
  Instr* other = op.b.binary(Opcode::add, times(sine, first), times(cosine, second));
  Instr* y;
  if (interleaved) {
    const Ints column{e[0], e[1], e[2], half, 1};
    y = op.b.concatenate({reshape(op, real, column), reshape(op, other, column)}, 4);
    y = reshape(op, y, {e[0], e[1], e[2], width});
  } else {
    y = op.b.concatenate({real, other}, 3);
  }
  return width < e[3] ? op.b.concatenate({y, columns(op, x, width, e[3])}, 3) : y;
}

// input, position_ids ([1]: the first; [B,S]), cosines, sines.
Outputs rotary_embedding(Op& op) {
  op.check_float(0);
  const bool interleaved = op.int_attr("interleaved", 0) != 0;
  if (op.int_attr("is_packed_batching", 0) != 0) op.fail("is_packed_batching is 1; wanted 0");
  if (op.float_attr("scale", 1.0) != 1.0) op.fail("scale is not 1");
  int64_t heads = op.int_attr("num_heads", 0);
  const int64_t width = op.int_attr("rotary_embedding_dim", 0);
  if (op.rank(2) != 2) op.fail("cos_cache is {}", to_string(op.shape(2)));
  if (width != 0 && width != 2 * op.shape(2).dim(1))
    op.fail("rotary_embedding_dim is {}, cos_cache {}", width, to_string(op.shape(2)));
  Instr* x = op.in(0);
  const bool flat = op.rank(0) == 3;
  if (flat && heads == 0) heads = op.shape(0).dim(2) / (2 * op.shape(2).dim(1));
  if (flat) x = split_heads(op, x, heads, "input");
  if (x->shape().rank() != 4) op.fail("input is {}", to_string(op.shape(0)));
  const Ints e = x->shape().extents(), both{e[0], e[2]};
  if (!tensor::is_integer(op.type(1)))
    op.fail("position_ids is {}, wanted integers", to_string(op.shape(1)));
  Instr* positions = op.b.convert(op.in(1), Type::s64);
  if (op.shape(1).elems() == 1 && op.rank(1) <= 1) {
    positions = op.b.binary(Opcode::add, iota(op, Type::s64, both, 1),
                            splat(op, reshape(op, positions, {}), both));
  } else if (op.shape(1).extents() != both) {
    op.fail("position_ids is {}, wanted [{}]", to_string(op.shape(1)), fmt::join(both, ","));
  }
  Instr* y = rotate(op, x, 2, 3, positions, true, interleaved);
  if (!flat) return {y};
  return {reshape(op, op.b.transpose(y, {0, 2, 1, 3}), {e[0], e[2], e[1] * e[3]})};
}

// ---- GroupQueryAttention ----

// The cache [B,M,T,D]: old keys up to `past` ([B,1,1,1]), then the new keys, then zeros.
Instr* filled(Op& op, Instr* before, Instr* fresh, Instr* past, int64_t length) {
  const Ints e = fresh->shape().extents(), all{e[0], e[1], length, e[3]};
  const Ints flat{e[0], length};
  Instr* key = iota(op, Type::s64, {e[0], 1, length, 1}, 2);
  Instr* at = binary(op, Opcode::subtract, reshape(op, key, flat), reshape(op, past, {e[0], 1}));
  Instr* written = binary(op, Opcode::and_, compare(op, Direction::ge, at, 0),
                          compare(op, Direction::lt, at, e[2]));
  Instr* at_place = at;
  at = binary(op, Opcode::minimum, binary(op, Opcode::maximum, at, 0), e[2] - 1);
  hlo::GatherAttrs attrs;  // for each batch, all heads of a position
  attrs.operand_batching_dims = attrs.start_indices_batching_dims = {0};
  attrs.collapsed_slice_dims = attrs.start_index_map = {2};
  attrs.index_vector_dim = 2;
  attrs.offset_dims = {2, 3};
  attrs.slice_sizes = {1, e[1], 1, e[3]};
  Instr* moved = op.b.transpose(op.b.gather(fresh, at, std::move(attrs)), {0, 2, 1, 3});
  Instr* kept = op.b.full(Shape::array(fresh->shape().type(), all), 0);
  if (before != nullptr && before->shape().elems() != 0) {
    const Ints b = before->shape().extents();
    kept = b[2] == length ? before
                          : op.b.pad(before, op.b.scalar(before->shape().type(), 0), {0, 0, 0, 0},
                                     {0, 0, length - b[2], 0}, {});
    op.check_builder();
    // Entries of the cache past the sequence's end are zeroed.
    Instr* old = compare(op, Direction::lt, at_place, 0);
    kept = select(op, op.b.broadcast(old, all, {0, 2}), kept, op.b.scalar(kept->shape().type(), 0));
  }
  return op.b.select(op.b.broadcast(written, all, {0, 2}), moved, kept);
}

// query, key, value, past key, past value, seqlens_k, total_sequence_length, cosines, sines,
// position_ids, attention bias.
class GroupQuery {
 public:
  explicit GroupQuery(Op& op) : op_(op) {}
  Outputs run();

 private:
  void read_attributes();
  void read_sink();
  void read_heads();
  void find_place();
  void rotate_heads();
  Instr* allowed() const;
  Instr* bias() const;
  // The past input for `fresh`, or null.
  Instr* cache(size_t input, Instr* fresh) const;

  Op& op_;
  int64_t heads_ = 0, shared_ = 0, window_ = -1;
  int64_t batch_ = 0, queries_ = 0, length_ = 0;  // length: of the output caches
  Core core_;
  Instr *k_ = nullptr, *v_ = nullptr;  // the new keys and values, by head
  Instr* past_ = nullptr;              // s64[B,1,1,1]: position of each batch's first new key
};

void GroupQuery::read_attributes() {
  heads_ = op_.int_attr("num_heads", 0);
  shared_ = op_.int_attr("kv_num_heads", 0);
  core_.scale = op_.float_attr("scale", 0);
  core_.cap = op_.float_attr("softcap", 0);
  window_ = op_.int_attr("local_window_size", -1);
  if (op_.int_attr("qk_output", 0) != 0) op_.fail("qk_output is not supported");
  if (heads_ < 1 || shared_ < 1 || op_.rank(0) != 3)
    op_.fail("query is {}, {} heads, {} of keys", to_string(op_.shape(0)), heads_, shared_);
}

// The softmax has one more term: a score of 0, or one score per head.
void GroupQuery::read_sink() {
  const Ints each{heads_};
  if (op_.has(11)) {
    if (op_.shape(11).extents() != each || !tensor::is_float(op_.type(11)))
      op_.fail("head_sink is {}, wanted [{}]", to_string(op_.shape(11)), heads_);
    core_.sink = op_.in(11);
  } else if (op_.int_attr("smooth_softmax", 0) > 0) {
    core_.sink = op_.b.full(Shape::array(Type::f32, each), 0);
  }
}

void GroupQuery::read_heads() {
  Instr *q = op_.in(0), *k = nullptr, *v = nullptr;
  if (op_.has(1) && op_.has(2)) {
    k = op_.in(1);
    v = op_.in(2);
  } else {
    const int64_t all = op_.shape(0).dim(2);
    if (all % (heads_ + 2 * shared_) != 0) op_.fail("query is {}", to_string(op_.shape(0)));
    const int64_t width = all / (heads_ + 2 * shared_);
    k = columns(op_, q, heads_ * width, (heads_ + shared_) * width);
    v = columns(op_, q, (heads_ + shared_) * width, all);
    q = columns(op_, q, 0, heads_ * width);
  }
  core_.q = split_heads(op_, q, heads_, "query");
  k_ = split_heads(op_, k, shared_, "key");
  v_ = split_heads(op_, v, shared_, "value");
  op_.check_builder();
  batch_ = core_.q->shape().dim(0);
  queries_ = core_.q->shape().dim(2);
  if (k_->shape().dim(2) != queries_ || v_->shape().dim(2) != queries_ || queries_ < 1)
    op_.fail("queries and new keys differ: {} and {}", to_string(core_.q->shape()),
             to_string(k_->shape()));
}

Instr* GroupQuery::cache(size_t input, Instr* fresh) const {
  if (!op_.has(input)) return nullptr;
  Ints wanted = fresh->shape().extents();
  if (op_.rank(input) == 4) wanted[2] = op_.shape(input).dim(2);
  if (op_.shape(input).extents() != wanted)
    op_.fail("input {} is {}, wanted [{}]", input, to_string(op_.shape(input)),
             fmt::join(wanted, ","));
  return op_.in(input);
}

void GroupQuery::find_place() {
  if (op_.has(3) != op_.has(4)) op_.fail("past_key and past_value must be given together");
  if (!op_.has(5) || op_.shape(5).elems() != batch_ || !tensor::is_integer(op_.type(5)))
    op_.fail("seqlens_k is missing or not [{}]", batch_);
  const int64_t total = op_.known_int(6, "total_sequence_length");
  const int64_t before = op_.has(3) && op_.rank(3) == 4 ? op_.shape(3).dim(2) : 0;
  length_ = std::max(before, total);
  if (length_ < queries_) op_.fail("total_sequence_length is {} with {} queries", total, queries_);
  op_.check_extents({batch_, heads_, queries_, length_});
  past_ = op_.b.full(Shape::array(Type::s64, {batch_, 1, 1, 1}), 0);
  if (queries_ == total) return;  // a first prompt
  Instr* last = op_.b.convert(op_.in(5), Type::s64);
  past_ = reshape(op_, binary(op_, Opcode::add, last, 1 - queries_), {batch_, 1, 1, 1});
}

void GroupQuery::rotate_heads() {
  const bool interleaved = op_.int_attr("rotary_interleaved", 0) != 0;
  if (op_.int_attr("do_rotary", 0) == 0) return;
  if (!op_.has(7) || !op_.has(8)) op_.fail("do_rotary is 1; cos_cache and sin_cache are missing");
  const Ints each{batch_, queries_};
  if (op_.has(9) && op_.shape(9).extents() != each)
    op_.fail("position_ids is {}", to_string(op_.shape(9)));
  if (op_.has(9) && !tensor::is_integer(op_.type(9)))
    op_.fail("position_ids is {}, wanted integers", to_string(op_.shape(9)));
  Instr* positions = op_.has(9) ? op_.b.convert(op_.in(9), Type::s64)
                                : binary(op_, Opcode::add, iota(op_, Type::s64, each, 1),
                                         reshape(op_, past_, {batch_, 1}));
  core_.q = rotate(op_, core_.q, 7, 8, positions, op_.has(9), interleaved);
  k_ = rotate(op_, k_, 7, 8, positions, op_.has(9), interleaved);
}

Instr* GroupQuery::allowed() const {
  Instr* key = iota(op_, Type::s64, {queries_, length_}, 1);
  Instr* place = binary(op_, Opcode::add, iota(op_, Type::s64, {queries_, length_}, 0), past_);
  Instr* result = compare(op_, Direction::le, key, place);
  if (window_ < 0) return result;
  Instr* first = binary(op_, Opcode::subtract, place, window_);
  return both(op_, result, compare(op_, Direction::gt, key, first));
}

// It may be shorter than the cache; keys past its end are masked anyway.
Instr* GroupQuery::bias() const {
  if (!op_.has(10)) return nullptr;
  Ints given = op_.shape(10).extents();
  Instr* result = op_.in(10);
  if (given.size() == 4 && given[3] < length_) {
    result = op_.b.pad(result, op_.b.scalar(op_.type(10), 0), {0, 0, 0, 0},
                       {0, 0, 0, length_ - given[3]}, {});
    given[3] = length_;
  }
  const Ints scores{batch_, heads_, queries_, length_};
  bool fits = given.size() == 4;
  for (size_t d = 0; fits && d < 4; ++d) fits = given[d] == scores[d] || given[d] == 1;
  if (!fits) op_.fail("attention_bias is {}", to_string(op_.shape(10)));
  return result;
}

Outputs GroupQuery::run() {
  op_.check_float(0);
  read_attributes();
  read_sink();
  read_heads();
  find_place();
  rotate_heads();
  core_.k = filled(op_, cache(3, k_), k_, past_, length_);
  core_.v = filled(op_, cache(4, v_), v_, past_, length_);
  op_.check_builder();
  core_.allowed = allowed();
  core_.added = bias();
  return {attend(op_, core_), core_.k, core_.v};
}

Outputs group_query_attention(Op& op) { return GroupQuery(op).run(); }

constexpr OpEntry kOps[] = {
    {"com.microsoft.GroupQueryAttention", 1, 12, group_query_attention},
    {"com.microsoft.RotaryEmbedding", 4, 4, rotary_embedding},
};

}  // namespace

std::span<const OpEntry> contrib_decoder_ops() { return kOps; }

}  // namespace heddle::import
