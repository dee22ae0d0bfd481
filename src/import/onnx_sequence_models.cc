// Operators of newer sequence models: LinearAttention, CausalConvWithState; and TfIdfVectorizer.
#include <algorithm>
#include <cmath>

#include "import/onnx_ops.h"
#include "import/onnx_recurrent.h"

namespace heddle::import {
namespace {

Instr* add(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::add, a, b); }
Instr* times(Op& op, Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); }

struct LinearSizes {
  int64_t batch, times, heads, kv_heads, key, value, decay = 0, beta = 0;
  bool gated, delta;
  double scale;
  int64_t group() const { return heads / kv_heads; }
};

LinearSizes read_linear(Op& op) {
  LinearSizes s{};
  const std::string rule = op.string_attr("update_rule", "gated_delta");
  s.gated = rule == "gated" || rule == "gated_delta";
  s.delta = rule == "delta" || rule == "gated_delta";
  if (!s.gated && !s.delta && rule != "linear") op.fail("update_rule is {}", quoted(rule));
  op.ignore({"chunk_size"});  // a hint
  s.heads = op.int_attr("q_num_heads", 0);
  s.kv_heads = op.int_attr("kv_num_heads", 0);
  const Ints q = op.shape(0).extents(), k = op.shape(1).extents(), v = op.shape(2).extents();
  bool ok = q.size() == 3 && k.size() == 3 && v.size() == 3 && s.heads > 0 && s.kv_heads > 0 &&
            s.heads % s.kv_heads == 0;
  ok = ok && q[2] % s.heads == 0 && v[2] % s.kv_heads == 0 && q[2] > 0 && v[2] > 0 && q[1] > 0;
  if (ok) {
    s.batch = q[0];
    s.times = q[1];
    s.key = q[2] / s.heads;
    s.value = v[2] / s.kv_heads;
    ok = k == Ints{s.batch, s.times, s.kv_heads * s.key} &&
         v == Ints{s.batch, s.times, s.kv_heads * s.value};
  }
  if (!ok || op.has(4) != s.gated || op.has(5) != s.delta)
    op.fail("query, key and value are {}, {} and {} in {} and {} heads; rule {}",
            to_string(op.shape(0)), to_string(op.shape(1)), to_string(op.shape(2)), s.heads,
            s.kv_heads, rule);
  const auto width = [&](size_t input, const Ints& allowed) {
    const Ints e = op.shape(input).extents();
    if (e.size() != 3 || e[0] != s.batch || e[1] != s.times ||
        std::find(allowed.begin(), allowed.end(), e[2]) == allowed.end())
      op.fail("input {} is {}, wanted [{},{},{}]", input, to_string(op.shape(input)), s.batch,
              s.times, fmt::join(allowed, " or "));
    return e[2];
  };
  if (s.gated) s.decay = width(4, {s.kv_heads, s.kv_heads * s.key});
  if (s.delta) s.beta = width(5, {s.kv_heads, 1});
  s.scale = op.float_attr("scale", 0);
  if (s.scale == 0) s.scale = 1 / std::sqrt(static_cast<double>(s.key));
  return s;
}

Instr* batched_dot(Op& op, Instr* a, int64_t a_dim, Instr* b, int64_t b_dim) {
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = {0, 1};
  attrs.lhs_contracting_dims = {a_dim};
  attrs.rhs_contracting_dims = {b_dim};
  return op.b.dot(a, b, std::move(attrs));
}

// One token: the memory [B,H,key,value] fades, is corrected, takes in the token and is read.
std::vector<Instr*> linear_step(Op& op, const Step& step, const LinearSizes& s) {
  int64_t at = 0;
  const auto next = [&](int64_t width, const Ints& extents) {
    Instr* part = op.b.slice(step.input, {0, at}, {s.batch, at + width}, {});
    at += width;
    return reshape(op, part, extents);
  };
  Instr* q = next(s.heads * s.key, {s.batch, s.kv_heads, s.group(), s.key});
  Instr* k = next(s.kv_heads * s.key, {s.batch, s.kv_heads, s.key});
  Instr* v = next(s.kv_heads * s.value, {s.batch, s.kv_heads, s.value});
  Instr* memory = step.states[1];
  const Ints extents = memory->shape().extents();
  if (s.gated) {
    Instr* fade = next(s.decay, {s.batch, s.kv_heads, s.decay / s.kv_heads});
    fade = broadcast_to(op, op.b.unary(Opcode::exponential, fade), {s.batch, s.kv_heads, s.key});
    memory = times(op, memory, op.b.broadcast(fade, extents, {0, 1, 2}));
  }
  if (s.delta) {
    Instr* beta = next(s.beta, {s.batch, s.beta, 1});
    Instr* known = batched_dot(op, k, 2, memory, 2);
    v = times(op, broadcast_to(op, beta, v->shape().extents()),
              op.b.binary(Opcode::subtract, v, known));
  }
  memory =
      add(op, memory,
          times(op, op.b.broadcast(k, extents, {0, 1, 2}), op.b.broadcast(v, extents, {0, 1, 3})));
  Instr* out = binary(op, Opcode::multiply, batched_dot(op, q, 3, memory, 2), s.scale);
  return {reshape(op, out, {s.batch, s.heads * s.value}), memory};
}

Outputs linear_attention(Op& op) {
  op.check_float(0);
  const LinearSizes s = read_linear(op);
  const Type type = op.type(0);
  const Type compute = type == Type::f64 ? Type::f64 : Type::f32;
  std::vector<Instr*> parts;
  for (size_t i : {0, 1, 2, 4, 5}) {
    if (op.has(i)) parts.push_back(op.b.transpose(op.b.convert(op.in(i), compute), {1, 0, 2}));
  }
  Recurrence r;
  r.projected = op.b.concatenate(parts, 2);
  r.states = {op.b.full(Shape::array(compute, {s.batch, s.heads * s.value}), 0)};
  const Ints memory = op.check_extents({s.batch, s.kv_heads, s.key, s.value});
  Type state_type = type;
  if (op.has(3)) {
    if (op.shape(3).extents() != memory)
      op.fail("past_state is {}, wanted [{}]", to_string(op.shape(3)), fmt::join(memory, ","));
    state_type = op.type(3);
    r.states.push_back(op.b.convert(op.in(3), compute));
  } else {
    r.states.push_back(op.b.full(Shape::array(compute, memory), 0));
  }
  r.step = [s](Op& at, const Step& step) { return linear_step(at, step, s); };
  op.check_builder();
  const Walked walked = walk_time(op, r);
  return {op.b.convert(op.b.transpose(walked.all, {1, 0, 2}), type),
          op.b.convert(walked.states[1], state_type)};
}

// A depthwise convolution over what came before and the input; what the next call needs of both.
Outputs causal_conv(Op& op) {
  op.check_float(0);
  const std::string activation = op.string_attr("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    op.fail("activation is {}, wanted none, silu or swish", quoted(activation));
  const Ints x = op.shape(0).extents(), w = op.shape(1).extents();
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1 ||
      op.type(1) != op.type(0))
    op.fail("input is {}, weight {}: wanted [B,C,L] and [C,1,k]", to_string(op.shape(0)),
            to_string(op.shape(1)));
  const int64_t kept = w[2] - 1;
  const Ints state{x[0], x[1], kept};
  op.check_extents({x[0], x[1], x[2] + kept});
  Instr* before = op.has(3) ? op.in(3) : op.b.full(Shape::array(op.type(0), state), 0);
  if (before->shape().extents() != state || before->shape().type() != op.type(0))
    op.fail("past_state is {}, wanted [{}]", to_string(before->shape()), fmt::join(state, ","));
  Instr* padded = kept == 0 ? op.in(0) : op.b.concatenate({before, op.in(0)}, 2);
  hlo::ConvolutionAttrs attrs;
  attrs.dims.input_feature = attrs.dims.output_feature = 1;
  attrs.dims.kernel_input_feature = 1;
  attrs.dims.kernel_output_feature = 0;
  attrs.dims.input_spatial = attrs.dims.kernel_spatial = attrs.dims.output_spatial = {2};
  attrs.feature_group_count = x[1];
  hlo::WindowDim window;
  window.size = w[2];
  attrs.window.dims = {window};
  Instr* y = op.b.convolution(padded, op.in(1), std::move(attrs));
  op.check_builder();
  if (op.has(2)) y = add(op, y, broadcast_along(op, op.in(2), x, 1));
  if (activation != "none") {
    Instr* wide = op.b.convert(y, compute_type(op.type(0)));
    y = op.b.convert(times(op, wide, op.b.unary(Opcode::logistic, wide)), op.type(0));
  }
  const int64_t all = x[2] + kept;
  return {y, op.b.slice(padded, {0, 0, all - kept}, {x[0], x[1], all}, {})};
}

// Sequences of `length` numbers of the pool, and where their counts go.
struct Grams {
  int64_t length = 0, count = 0;
  Ints items, places;
};

std::vector<Grams> read_grams(Op& op) {
  const Ints starts = op.ints_attr("ngram_counts"), places = op.ints_attr("ngram_indexes");
  const Ints pool = op.ints_attr("pool_int64s");
  if (op.has_attr("pool_strings")) op.fail("strings are not supported");
  const int64_t least = op.int_attr("min_gram_length", 1), most = op.int_attr("max_gram_length", 1);
  std::vector<Grams> result;
  size_t place = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<int64_t>(i) + 1;
    const auto size = static_cast<int64_t>(pool.size());
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
    if (starts[i] < 0 || starts[i] > end || end > size || (end - starts[i]) % length != 0)
      op.fail("ngram_counts [{}] do not cut the pool of {}", fmt::join(starts, ","), size);
    Grams grams{
        length, (end - starts[i]) / length, {pool.begin() + starts[i], pool.begin() + end}, {}};
    for (int64_t k = 0; k < grams.count; ++k, ++place) {
      if (place >= places.size() || places[place] < 0) op.fail("ngram_indexes are too few");
      grams.places.push_back(places[place]);
    }
    if (length >= least && length <= most && grams.count > 0) result.push_back(std::move(grams));
  }
  return result;
}

// How often each of the grams stands in x [B,L], f32 [B,count].
Instr* count_grams(Op& op, Instr* x, const Grams& grams, int64_t skips) {
  const int64_t batch = x->shape().dim(0), length = x->shape().dim(1);
  Instr* total = op.b.full(Shape::array(Type::f32, {batch, grams.count}), 0);
  for (int64_t skip = 0; skip <= (grams.length == 1 ? 0 : skips); ++skip) {
    const int64_t windows = length - (grams.length - 1) * (skip + 1);
    if (windows < 1) continue;
    const Ints extents = op.check_extents({batch, windows, grams.count});
    Instr* all = nullptr;
    for (int64_t m = 0; m < grams.length; ++m) {
      Literal wanted(Shape::array(x->shape().type(), {grams.count}));
      for (int64_t g = 0; g < grams.count; ++g)
        wanted.set_s64(g, grams.items[static_cast<size_t>(g * grams.length + m)]);
      const int64_t from = m * (skip + 1);
      Instr* seen = op.b.slice(x, {0, from}, {batch, from + windows}, {});
      Instr* equal = op.b.compare(Direction::eq, op.b.broadcast(seen, extents, {0, 1}),
                                  op.b.broadcast(op.b.constant(wanted), extents, {2}));
      all = all == nullptr ? equal : op.b.binary(Opcode::and_, all, equal);
    }
    total = add(op, total, op.b.reduce(Opcode::add, op.b.convert(all, Type::f32), {1}));
  }
  return total;
}

Outputs tf_idf(Op& op) {
  const std::string mode = op.string_attr("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") op.fail("mode is {}", quoted(mode));
  const int64_t skips = op.int_attr("max_skip_count", 0);
  const std::vector<float> weights = op.floats_attr("weights");
  const Ints all_places = op.ints_attr("ngram_indexes");
  const std::vector<Grams> grams = read_grams(op);
  op.ignore({"pool_int64s", "ngram_counts"});
  if (!tensor::is_integer(op.type(0)) || op.rank(0) < 1 || op.rank(0) > 2)
    op.fail("X is {}, wanted integers of rank 1 or 2", to_string(op.shape(0)));
  constexpr int64_t kMostSkips = 1 << 10;
  if (skips < 0 || skips > kMostSkips || all_places.empty()) op.fail("max_skip_count {}", skips);
  const bool flat = op.rank(0) == 1;
  const Ints e = op.shape(0).extents();
  Instr* x = reshape(op, op.in(0), flat ? Ints{1, e[0]} : e);
  const int64_t batch = flat ? 1 : e[0];
  const int64_t width = *std::max_element(all_places.begin(), all_places.end()) + 1;
  op.check_extents({batch, width});
  Instr* y = op.b.full(Shape::array(Type::f32, {batch, width}), 0);
  for (const Grams& g : grams) {
    op.check_extents({g.count, width});
    Literal to(Shape::array(Type::f32, {g.count, width}));
    for (int64_t i = 0; i < g.count; ++i)
      to.set_f64(i * width + g.places[static_cast<size_t>(i)], 1);
    y = add(op, y, matrix_product(op, count_grams(op, x, g, skips), op.b.constant(to)));
  }
  if (mode == "IDF") y = op.b.convert(compare(op, Direction::gt, y, 0), Type::f32);
  if (mode != "TF" && !weights.empty()) {
    if (static_cast<int64_t>(weights.size()) != width)  // one an output
      op.fail("{} weights for {} outputs", weights.size(), width);
    Literal factor(Shape::array(Type::f32, {width}));
    for (size_t i = 0; i < weights.size(); ++i)
      factor.set_f64(static_cast<int64_t>(i), static_cast<double>(weights[i]));
    y = times(op, y, broadcast_along(op, op.b.constant(factor), {batch, width}, 1));
  }
  return {reshape(op, y, flat ? Ints{width} : Ints{batch, width})};
}

Outputs array_feature_extractor(Op& op) {
  if (op.rank(0) < 1 || !tensor::is_integer(op.type(1)) || op.shape(0).elems() == 0)
    op.fail("X is {}, Y {}", to_string(op.shape(0)), to_string(op.shape(1)));
  const int64_t last = op.rank(0) - 1;
  op.demand(1, {{0, op.shape(0).dim(last) - 1}});
  Instr* at = reshape(op, op.in(1), {op.shape(1).elems()});
  Instr* x = op.rank(0) == 1 ? reshape(op, op.in(0), {1, op.shape(0).dim(0)}) : op.in(0);
  return {op.b.take(x, at, std::max<int64_t>(last, 1))};
}

Outputs binarizer(Op& op) {
  Instr* x = op.in(0);
  return {op.b.convert(compare(op, Direction::gt, x, op.float_attr("threshold", 0)), op.type(0))};
}

constexpr OpEntry kOps[] = {
    {"CausalConvWithState", 2, 4, causal_conv},
    {"LinearAttention", 3, 6, linear_attention},
    {"TfIdfVectorizer", 1, 1, tf_idf},
    {"ai.onnx.ml.ArrayFeatureExtractor", 2, 2, array_feature_extractor},
    {"ai.onnx.ml.Binarizer", 1, 1, binarizer},
};

}  // namespace

std::span<const OpEntry> sequence_model_ops() { return kOps; }

}  // namespace heddle::import
