// What the networks are made of. A Net is one module under construction.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "hlo/builder.h"
#include "models.h"

namespace heddle::models {

using hlo::Instr;
using hlo::Opcode;
using tensor::Shape;
using tensor::Type;
using Extents = std::vector<int64_t>;

class Net {
 public:
  explicit Net(const std::string& name);
  ModulePtr finish(Instr* result);  // the result is the root
  hlo::Builder& b() { return builder_; }

  Instr* input(Type type, const Extents& extents, const std::string& name);
  // Uniform in [-spread, spread] around `mean`.
  Instr* weight(const Extents& extents, double spread, double mean = 0);

  Instr* dense(Instr* x, int64_t outputs, bool bias = true);  // along the last dimension
  Instr* embedding(Instr* ids, int64_t rows, int64_t width);
  // Picture [n, c, h, w]. `groups` = c: depthwise.
  Instr* conv(Instr* x, int64_t outputs, Extents kernel, int64_t stride, Extents padding,
              bool bias = true, int64_t groups = 1);
  Instr* batch_norm(Instr* x, int64_t features);  // features along this dimension
  Instr* max_pool(Instr* x, int64_t kernel, Extents strides, Extents padding);
  Instr* mean(Instr* x, const Extents& dimensions);
  Instr* layer_norm(Instr* x);
  Instr* rms_norm(Instr* x);

  Instr* relu(Instr* x);
  Instr* gelu(Instr* x);
  Instr* silu(Instr* x) { return mul(x, b().unary(Opcode::logistic, x)); }
  Instr* softmax(Instr* x);  // along the last dimension
  Instr* log_softmax(Instr* x);

  // Numpy broadcasting.
  Instr* add(Instr* x, Instr* y) { return b().binary_broadcast(Opcode::add, x, y); }
  Instr* sub(Instr* x, Instr* y) { return b().binary_broadcast(Opcode::subtract, x, y); }
  Instr* mul(Instr* x, Instr* y) { return b().binary_broadcast(Opcode::multiply, x, y); }
  Instr* number(double value) { return b().scalar(Type::f32, value); }
  // The part [from, to) along a dimension.
  Instr* part(Instr* x, int64_t dimension, int64_t from, int64_t to);
  std::vector<Instr*> split(Instr* x, int64_t dimension, int64_t parts);

  Instr* heads(Instr* x, int64_t count);  // [n, t, w] -> [n, count, t, w / count]
  Instr* join_heads(Instr* x);            // back
  // Of [n, heads, t, w] each; `mask`, where given, is added to the scores.
  Instr* attend(Instr* queries, Instr* keys, Instr* values, Instr* mask);
  // [t, s]: 0 where position past + t sees s, else a large negative number.
  Instr* causal_mask(int64_t length, int64_t past);

  // One step of a GRU whose update gate is scaled by `score`, where given.
  struct Cell {
    Instr *from_input, *from_state, *input_bias, *state_bias;
  };
  Cell gru_cell(int64_t inputs, int64_t hidden) { return cell(inputs, hidden, 3); }
  Cell lstm_cell(int64_t inputs, int64_t hidden) { return cell(inputs, hidden, 4); }
  Instr* gru_step(const Cell& cell, Instr* x, Instr* state, Instr* score = nullptr);
  // (hidden, cell state).
  std::pair<Instr*, Instr*> lstm_step(const Cell& cell, Instr* x, Instr* hidden, Instr* state);

 private:
  Cell cell(int64_t inputs, int64_t hidden, int64_t gates);

  ModulePtr module_;
  hlo::Builder builder_;
  uint64_t random_ = 1;
  int64_t inputs_ = 0;
};

}  // namespace heddle::models
