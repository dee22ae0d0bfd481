#include "net.h"

namespace heddle::models {

namespace {

std::unique_ptr<hlo::Module> empty_module(const std::string& name) {
  auto module = std::make_unique<hlo::Module>(name);
  module->set_entry(module->add_computation("main"));
  return module;
}

}  // namespace

Net::Net(const std::string& name) : module_(empty_module(name)), builder_(module_->entry()) {}

ModulePtr Net::finish(Instr* result) {
  builder_.check();
  module_->entry()->set_root(result);
  return std::move(module_);
}

Instr* Net::input(Type type, const Extents& extents, const std::string& name) {
  return b().parameter(inputs_++, Shape::array(type, extents), name);
}

Instr* Net::weight(const Extents& extents, double spread, double mean) {
  tensor::Literal values(Shape::array(Type::f32, extents));
  auto* data = static_cast<float*>(values.mutable_data());
  for (int64_t i = 0; i < values.shape().elems(); ++i) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(random_ >> 40) / (1 << 24);  // [0, 1)
    data[i] = static_cast<float>(mean + spread * (2 * unit - 1));
  }
  return b().constant(std::move(values));
}

Instr* Net::dense(Instr* x, int64_t outputs, bool bias) {
  const int64_t inputs = x->shape().dim(-1);
  Instr* y = x;
  Extents extents = x->shape().extents();
  Instr* flat = b().reshape(x, {x->shape().elems() / inputs, inputs});
  y = b().matmul(flat, weight({inputs, outputs}, std::sqrt(3.0 / static_cast<double>(inputs))));
  extents.back() = outputs;
  y = b().reshape(y, extents);
  return bias ? add(y, weight({outputs}, 0.1)) : y;
}

Instr* Net::embedding(Instr* ids, int64_t rows, int64_t width) {
  return b().take(weight({rows, width}, 1), ids, 0);
}

Instr* Net::conv(Instr* x, int64_t outputs, Extents kernel, int64_t stride, Extents padding,
                 bool bias, int64_t groups) {
  const int64_t inputs = x->shape().dim(1) / groups;
  hlo::ConvolutionAttrs attrs;
  attrs.dims = {0, 1, 1, 0, 0, 1, {2, 3}, {2, 3}, {2, 3}};
  attrs.feature_group_count = groups;
  for (size_t i = 0; i < 2; ++i)
    attrs.window.dims.push_back({kernel[i], stride, padding[i], padding[i]});
  const auto fan_in = static_cast<double>(inputs * kernel[0] * kernel[1]);
  Instr* y = b().convolution(
      x, weight({outputs, inputs, kernel[0], kernel[1]}, std::sqrt(6 / fan_in)), attrs);
  return bias ? add(y, weight({outputs, 1, 1}, 0.1)) : y;
}

Instr* Net::batch_norm(Instr* x, int64_t features) {
  const int64_t n = x->shape().dim(features);
  return b().make(Opcode::batch_norm_inference,
                  {x, weight({n}, 0.3, 1), weight({n}, 0.1), weight({n}, 0.1), weight({n}, 0.3, 1)},
                  hlo::BatchNormAttrs{1e-5, features});
}

Instr* Net::max_pool(Instr* x, int64_t kernel, Extents strides, Extents padding) {
  hlo::Window window{{{}, {}}};
  for (size_t i = 0; i < 2; ++i)
    window.dims.push_back({kernel, strides[i], padding[i], padding[i]});
  return b().reduce_window(Opcode::maximum, x, number(-INFINITY), window);
}

// The dimensions stay, with extent 1.
Instr* Net::mean(Instr* x, const Extents& dimensions) {
  Extents extents = x->shape().extents();
  double count = 1;
  for (int64_t& d : Extents(dimensions)) {
    count *= static_cast<double>(extents[static_cast<size_t>(d)]);
    extents[static_cast<size_t>(d)] = 1;
  }
  return mul(b().reshape(b().reduce(Opcode::add, x, dimensions), extents), number(1 / count));
}

Instr* Net::layer_norm(Instr* x) {
  const int64_t last = x->shape().rank() - 1, n = x->shape().dim(last);
  Instr* centred = sub(x, mean(x, {last}));
  Instr* variance = mean(mul(centred, centred), {last});
  Instr* scale = b().unary(Opcode::rsqrt, add(variance, number(1e-5)));
  return add(mul(mul(centred, scale), weight({n}, 0.3, 1)), weight({n}, 0.1));
}

Instr* Net::rms_norm(Instr* x) {
  const int64_t last = x->shape().rank() - 1;
  Instr* scale = b().unary(Opcode::rsqrt, add(mean(mul(x, x), {last}), number(1e-5)));
  return mul(mul(x, scale), weight({x->shape().dim(last)}, 0.3, 1));
}

Instr* Net::relu(Instr* x) { return b().binary_broadcast(Opcode::maximum, x, number(0)); }

Instr* Net::gelu(Instr* x) {
  Instr* erf = b().unary(Opcode::erf, mul(x, number(std::sqrt(0.5))));
  return mul(mul(x, number(0.5)), add(erf, number(1)));
}

Instr* Net::softmax(Instr* x) {
  const int64_t last = x->shape().rank() - 1;
  Extents extents = x->shape().extents();
  extents.back() = 1;
  Instr* most = b().reshape(b().reduce(Opcode::maximum, x, {last}), extents);
  Instr* raised = b().unary(Opcode::exponential, sub(x, most));
  Instr* sum = b().reshape(b().reduce(Opcode::add, raised, {last}), extents);
  return b().binary_broadcast(Opcode::divide, raised, sum);
}

Instr* Net::log_softmax(Instr* x) {
  const int64_t last = x->shape().rank() - 1;
  Extents extents = x->shape().extents();
  extents.back() = 1;
  Instr* below = sub(x, b().reshape(b().reduce(Opcode::maximum, x, {last}), extents));
  Instr* sum = b().reduce(Opcode::add, b().unary(Opcode::exponential, below), {last});
  return sub(below, b().unary(Opcode::log, b().reshape(sum, extents)));
}

Instr* Net::part(Instr* x, int64_t dimension, int64_t from, int64_t to) {
  Extents starts(static_cast<size_t>(x->shape().rank()), 0), limits = x->shape().extents();
  starts[static_cast<size_t>(dimension)] = from;
  limits[static_cast<size_t>(dimension)] = to;
  return b().slice(x, starts, limits, {});
}

std::vector<Instr*> Net::split(Instr* x, int64_t dimension, int64_t parts) {
  const int64_t width = x->shape().dim(dimension) / parts;
  std::vector<Instr*> result;
  for (int64_t i = 0; i < parts; ++i)
    result.push_back(part(x, dimension, i * width, (i + 1) * width));
  return result;
}

Instr* Net::heads(Instr* x, int64_t count) {
  const Shape& s = x->shape();
  return b().transpose(b().reshape(x, {s.dim(0), s.dim(1), count, s.dim(2) / count}), {0, 2, 1, 3});
}

Instr* Net::join_heads(Instr* x) {
  const Shape s = x->shape();
  return b().reshape(b().transpose(x, {0, 2, 1, 3}), {s.dim(0), s.dim(2), s.dim(1) * s.dim(3)});
}

Instr* Net::attend(Instr* queries, Instr* keys, Instr* values, Instr* mask) {
  const double scale = 1 / std::sqrt(static_cast<double>(queries->shape().dim(3)));
  Instr* scores = mul(b().matmul(queries, b().transpose(keys, {0, 1, 3, 2})), number(scale));
  return b().matmul(softmax(mask ? add(scores, mask) : scores), values);
}

Instr* Net::causal_mask(int64_t length, int64_t past) {
  tensor::Literal values(Shape::array(Type::f32, {length, past + length}));
  auto* data = static_cast<float*>(values.mutable_data());
  for (int64_t t = 0; t < length; ++t)
    for (int64_t s = 0; s < past + length; ++s) *data++ = s <= past + t ? 0 : -1e9f;
  return b().constant(std::move(values));
}

Net::Cell Net::cell(int64_t inputs, int64_t hidden, int64_t gates) {
  const double spread = 1 / std::sqrt(static_cast<double>(hidden));
  return {weight({inputs, gates * hidden}, std::sqrt(3.0 / static_cast<double>(inputs))),
          weight({hidden, gates * hidden}, std::sqrt(3.0) * spread),
          weight({gates * hidden}, spread), weight({gates * hidden}, spread)};
}

Instr* Net::gru_step(const Cell& cell, Instr* x, Instr* state, Instr* score) {
  const auto in = split(add(b().matmul(x, cell.from_input), cell.input_bias), 1, 3);
  const auto old = split(add(b().matmul(state, cell.from_state), cell.state_bias), 1, 3);
  Instr* reset = b().unary(Opcode::logistic, add(in[0], old[0]));
  Instr* update = b().unary(Opcode::logistic, add(in[1], old[1]));
  if (score) update = mul(update, score);
  Instr* fresh = b().unary(Opcode::tanh, add(in[2], mul(reset, old[2])));
  return add(mul(sub(number(1), update), state), mul(update, fresh));
}

std::pair<Instr*, Instr*> Net::lstm_step(const Cell& cell, Instr* x, Instr* hidden, Instr* state) {
  Instr* sum = add(add(b().matmul(x, cell.from_input), cell.input_bias),
                   add(b().matmul(hidden, cell.from_state), cell.state_bias));
  const auto gates = split(sum, 1, 4);  // input, forget, output, new
  Instr* kept = mul(b().unary(Opcode::logistic, gates[1]), state);
  Instr* fresh = mul(b().unary(Opcode::logistic, gates[0]), b().unary(Opcode::tanh, gates[3]));
  Instr* next = add(kept, fresh);
  return {mul(b().unary(Opcode::logistic, gates[2]), b().unary(Opcode::tanh, next)), next};
}

}  // namespace heddle::models
