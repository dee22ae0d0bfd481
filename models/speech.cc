#include <algorithm>
#include <tuple>

#include "net.h"

namespace heddle::models {

namespace {

// Scores [n, h, t, 2t-1] by distance to [n, h, t, t] by position.
Instr* by_position(Net& net, Instr* scores) {
  const Shape s = scores->shape();
  const int64_t length = s.dim(2), distances = s.dim(3);
  Instr* padded = net.b().pad(scores, net.number(0), {0, 0, 0, 1}, {0, 0, 0, 0}, {});
  padded = net.b().reshape(padded, {s.dim(0), s.dim(1), distances + 1, length});
  Instr* moved = net.part(padded, 2, 1, distances + 1);
  moved = net.b().reshape(moved, {s.dim(0), s.dim(1), length, distances});
  return net.part(moved, 3, 0, length);
}

Instr* relative_attention(Net& net, Instr* x, int64_t heads) {
  const int64_t length = x->shape().dim(1), width = x->shape().dim(2);
  Instr* queries = net.dense(x, width);
  Instr* keys = net.heads(net.dense(x, width), heads);
  Instr* values = net.heads(net.dense(x, width), heads);
  Instr* places = net.dense(net.weight({1, 2 * length - 1, width}, 1), width, /*bias=*/false);
  places = net.b().transpose(net.heads(places, heads), {0, 1, 3, 2});
  Instr* by_content = net.heads(net.add(queries, net.weight({width}, 0.1)), heads);
  Instr* by_place = net.heads(net.add(queries, net.weight({width}, 0.1)), heads);
  by_content = net.b().matmul(by_content, net.b().transpose(keys, {0, 1, 3, 2}));
  by_place = by_position(net, net.b().matmul(by_place, places));
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  Instr* weights = net.softmax(net.mul(net.add(by_content, by_place), net.number(scale)));
  return net.dense(net.join_heads(net.b().matmul(weights, values)), width);
}

Instr* half_step(Net& net, Instr* x) {
  const int64_t width = x->shape().dim(2);
  Instr* y = net.dense(net.silu(net.dense(net.layer_norm(x), 4 * width)), width);
  return net.add(x, net.mul(y, net.number(0.5)));
}

// Gated linear unit, depthwise convolution in time, norm, SiLU.
Instr* convolution_module(Net& net, Instr* x, int64_t kernel) {
  const Shape s = x->shape();
  const int64_t width = s.dim(2);
  const auto halves = net.split(net.dense(net.layer_norm(x), 2 * width), 2, 2);
  Instr* y = net.mul(halves[0], net.b().unary(Opcode::logistic, halves[1]));
  y = net.b().reshape(net.b().transpose(y, {0, 2, 1}), {s.dim(0), width, s.dim(1), 1});
  y = net.conv(y, width, {kernel, 1}, 1, {kernel / 2, 0}, true, /*groups=*/width);
  y = net.silu(net.batch_norm(y, 1));
  y = net.b().transpose(net.b().reshape(y, {s.dim(0), width, s.dim(1)}), {0, 2, 1});
  return net.dense(y, width);
}

// One direction along steps [n, w] each; results in the order of the steps.
std::vector<Instr*> run_lstm(Net& net, std::vector<Instr*> steps, int64_t hidden, bool backward) {
  const Shape s = steps[0]->shape();
  const Net::Cell cell = net.lstm_cell(s.dim(1), hidden);
  if (backward) std::reverse(steps.begin(), steps.end());
  Instr* h = net.b().full(Shape::array(Type::f32, {s.dim(0), hidden}), 0);
  Instr* state = h;
  for (Instr*& step : steps) {
    std::tie(h, state) = net.lstm_step(cell, step, h, state);
    step = h;
  }
  if (backward) std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace

ModulePtr conformer(const ConformerSize& size) {
  Net net("conformer");
  Instr* x = net.input(Type::f32, {size.batch, size.steps, size.width}, "frames");
  for (int64_t layer = 0; layer < size.layers; ++layer) {
    x = half_step(net, x);
    x = net.add(x, relative_attention(net, net.layer_norm(x), size.heads));
    x = net.add(x, convolution_module(net, x, size.kernel));
    x = net.layer_norm(half_step(net, x));
  }
  return net.finish(net.log_softmax(net.dense(x, size.classes)));
}

ModulePtr crnn(const CrnnSize& size) {
  Net net("crnn");
  Instr* x = net.input(Type::f32, {size.batch, 1, 32, size.columns}, "image");
  for (size_t i = 0; i < size.widths.size(); ++i) {
    const bool last = i + 1 == size.widths.size();
    const int64_t kernel = last ? 2 : 3, padding = last ? 0 : 1;
    x = net.conv(x, size.widths[i], {kernel, kernel}, 1, {padding, padding});
    if (i == 2 || i == 4 || i == 6) x = net.batch_norm(x, 1);
    x = net.relu(x);
    if (i == 0 || i == 1) x = net.max_pool(x, 2, {2, 2}, {0, 0});
    if (i == 3 || i == 5) x = net.max_pool(x, 2, {2, 1}, {0, 1});
  }
  const int64_t width = x->shape().dim(1), columns = x->shape().dim(3);
  std::vector<Instr*> steps;
  for (int64_t i = 0; i < columns; ++i)
    steps.push_back(net.b().reshape(net.part(x, 3, i, i + 1), {size.batch, width}));
  for (int layer = 0; layer < 2; ++layer) {
    const auto forward = run_lstm(net, steps, size.hidden, false);
    const auto backward = run_lstm(net, steps, size.hidden, true);
    for (size_t i = 0; i < steps.size(); ++i)
      steps[i] = net.b().concatenate({forward[i], backward[i]}, 1);
  }
  for (Instr*& step : steps) step = net.b().reshape(step, {1, size.batch, 2 * size.hidden});
  return net.finish(net.log_softmax(net.dense(net.b().concatenate(steps, 0), size.classes)));
}

}  // namespace heddle::models
