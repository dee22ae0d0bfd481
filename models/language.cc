#include "net.h"

namespace heddle::models {

namespace {

struct Attention {
  Instr *output, *keys, *values;
};

// `from`: what is attended to; its keys and values stand behind those of `past`, where given.
Attention attention(Net& net, Instr* x, Instr* from, int64_t heads, Instr* mask,
                    std::pair<Instr*, Instr*> past = {}) {
  const int64_t width = x->shape().dim(2);
  Instr* queries = net.heads(net.dense(x, width), heads);
  Instr* keys = net.heads(net.dense(from, width), heads);
  Instr* values = net.heads(net.dense(from, width), heads);
  if (past.first) {
    keys = net.b().concatenate({past.first, keys}, 2);
    values = net.b().concatenate({past.second, values}, 2);
  }
  Instr* mixed = net.join_heads(net.attend(queries, keys, values, mask));
  return {net.dense(mixed, width), keys, values};
}

Instr* feed_forward(Net& net, Instr* x, int64_t hidden) {
  return net.dense(net.gelu(net.dense(x, hidden)), x->shape().dim(2));
}

Instr* words(Net& net, Instr* ids, const TextSize& size, int64_t from = 0) {
  Instr* place = net.weight({size.length + from, size.width}, 0.5);
  if (from > 0) place = net.part(place, 0, from, from + size.length);
  return net.add(net.embedding(ids, size.vocabulary, size.width), place);
}

Instr* ids(Net& net, const TextSize& size, const std::string& name) {
  return net.input(Type::s32, {size.batch, size.length}, name);
}

// Norms behind the sums.
Instr* encoder(Net& net, Instr* x, Instr* mask, const TextSize& size) {
  for (int64_t layer = 0; layer < size.layers; ++layer) {
    x = net.layer_norm(net.add(x, attention(net, x, x, size.heads, mask).output));
    x = net.layer_norm(net.add(x, feed_forward(net, x, size.feed_forward)));
  }
  return x;
}

// Inputs past.<layer>.key and .value, or nothing.
std::vector<std::pair<Instr*, Instr*>> past_inputs(Net& net, int64_t layers,
                                                   const Extents& extents) {
  std::vector<std::pair<Instr*, Instr*>> result(static_cast<size_t>(layers));
  if (extents[2] == 0) return result;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = "past." + std::to_string(layer);
    result[static_cast<size_t>(layer)].first = net.input(Type::f32, extents, name + ".key");
    result[static_cast<size_t>(layer)].second = net.input(Type::f32, extents, name + ".value");
  }
  return result;
}

// Rotary positions: pairs (i, i + w/2) of every head turn by an angle that grows with the position.
Instr* rotated(Net& net, Instr* x, int64_t past) {
  const int64_t length = x->shape().dim(2), half = x->shape().dim(3) / 2;
  tensor::Literal angles(Shape::array(Type::f32, {length, half}));
  auto* data = static_cast<float*>(angles.mutable_data());
  for (int64_t t = 0; t < length; ++t)
    for (int64_t i = 0; i < half; ++i)
      *data++ = static_cast<float>(
          static_cast<double>(past + t) *
          std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half)));
  Instr* angle = net.b().constant(std::move(angles));
  Instr* cosine = net.b().unary(Opcode::cosine, angle);
  Instr* sine = net.b().unary(Opcode::sine, angle);
  const auto halves = net.split(x, 3, 2);
  return net.b().concatenate({net.sub(net.mul(halves[0], cosine), net.mul(halves[1], sine)),
                              net.add(net.mul(halves[1], cosine), net.mul(halves[0], sine))},
                             3);
}

// [n, k, t, w] -> [n, k * times, t, w]: every key head serves `times` query heads.
Instr* repeated(Net& net, Instr* x, int64_t times) {
  const Shape s = x->shape();
  Instr* wide = net.b().broadcast(x, {s.dim(0), s.dim(1), times, s.dim(2), s.dim(3)}, {0, 1, 3, 4});
  return net.b().reshape(wide, {s.dim(0), s.dim(1) * times, s.dim(2), s.dim(3)});
}

}  // namespace

ModulePtr bert(const TextSize& size) {
  Net net("bert");
  Instr* x = ids(net, size, "input_ids");
  Instr* kept = net.input(Type::f32, {size.batch, size.length}, "attention_mask");
  Instr* mask = net.mul(net.sub(kept, net.number(1)), net.number(1e9));
  mask = net.b().reshape(mask, {size.batch, 1, 1, size.length});
  return net.finish(encoder(net, net.layer_norm(words(net, x, size)), mask, size));
}

ModulePtr transformer(const TextSize& size) {
  Net net("transformer");
  Instr* source = ids(net, size, "source");
  Instr* target = ids(net, size, "target");
  Instr* memory = encoder(net, words(net, source, size), nullptr, size);
  Instr* x = words(net, target, size);
  Instr* mask = net.causal_mask(size.length, 0);
  for (int64_t layer = 0; layer < size.layers; ++layer) {
    x = net.layer_norm(net.add(x, attention(net, x, x, size.heads, mask).output));
    x = net.layer_norm(net.add(x, attention(net, x, memory, size.heads, nullptr).output));
    x = net.layer_norm(net.add(x, feed_forward(net, x, size.feed_forward)));
  }
  return net.finish(net.log_softmax(net.dense(x, size.vocabulary)));
}

ModulePtr gpt2(const TextSize& size, int64_t past) {
  Net net("gpt2");
  Instr* x = words(net, ids(net, size, "input_ids"), size, past);
  const auto cache =
      past_inputs(net, size.layers, {size.batch, size.heads, past, size.width / size.heads});
  Instr* mask = net.causal_mask(size.length, past);
  std::vector<Instr*> results(1);
  for (const auto& pair : cache) {
    const Attention a =
        attention(net, net.layer_norm(x), net.layer_norm(x), size.heads, mask, pair);
    x = net.add(x, a.output);
    x = net.add(x, feed_forward(net, net.layer_norm(x), size.feed_forward));
    results.insert(results.end(), {a.keys, a.values});
  }
  results[0] = net.dense(net.layer_norm(x), size.vocabulary, /*bias=*/false);
  return net.finish(net.b().tuple(results));
}

ModulePtr llama(const LlamaSize& size) {
  Net net("llama");
  Instr* x = net.input(Type::f32, {size.batch, size.length, size.width}, "hidden_states");
  const int64_t head_width = size.width / size.heads, key_width = head_width * size.key_heads;
  const auto cache =
      past_inputs(net, size.layers, {size.batch, size.key_heads, size.past, head_width});
  Instr* mask = net.causal_mask(size.length, size.past);
  std::vector<Instr*> results(1);
  for (const auto& [past_keys, past_values] : cache) {
    Instr* y = net.rms_norm(x);
    Instr* queries =
        rotated(net, net.heads(net.dense(y, size.width, false), size.heads), size.past);
    Instr* keys =
        rotated(net, net.heads(net.dense(y, key_width, false), size.key_heads), size.past);
    Instr* values = net.heads(net.dense(y, key_width, false), size.key_heads);
    if (past_keys) {
      keys = net.b().concatenate({past_keys, keys}, 2);
      values = net.b().concatenate({past_values, values}, 2);
    }
    const int64_t times = size.heads / size.key_heads;
    Instr* mixed =
        net.attend(queries, repeated(net, keys, times), repeated(net, values, times), mask);
    x = net.add(x, net.dense(net.join_heads(mixed), size.width, false));
    y = net.rms_norm(x);
    Instr* gate = net.silu(net.dense(y, size.feed_forward, false));
    y = net.mul(gate, net.dense(y, size.feed_forward, false));
    x = net.add(x, net.dense(y, size.width, false));
    results.insert(results.end(), {keys, values});
  }
  results[0] = net.rms_norm(x);
  return net.finish(net.b().tuple(results));
}

}  // namespace heddle::models
