// Mixtures of experts of com.microsoft (MoE, QMoE). Each row is computed by the few experts with
// its highest scores. If all rows together choose fewer than there are, their weights are gathered;
// else all experts compute all rows, as two products with the matrices of all experts, and the
// results of unchosen experts have weight 0.
#include <deque>

#include "import/onnx_contrib.h"
#include "import/onnx_ops.h"
#include "import/onnx_quantize.h"

namespace heddle::import {
namespace {

struct Places {  // of a matrix's inputs; `zeros`: 0 if it has none
  size_t weights, scales, bias, zeros;
};
constexpr Places kFloat[] = {{2, 0, 3, 0}, {4, 0, 5, 0}, {6, 0, 7, 0}};
constexpr Places kQuantised[] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};

class Experts {
 public:
  Experts(Op& op, bool quantised) : op_(op), places_(quantised ? kQuantised : kFloat) {
    quantised_ = quantised;
  }
  Outputs run();

 private:
  void read_attributes();
  void choose();
  Instr* chosen_of(Instr* all);
  Instr* weights(const Places& at, int64_t outputs, int64_t inputs);
  Instr* dequantised_weights(const Places& at, Instr* x, int64_t outputs, int64_t inputs);
  Instr* zero_points(const Places& at, const Ints& scales);
  Instr* first(const Places& at, int64_t outputs);
  Instr* activated(Instr* x);
  Instr* combined(Instr* hidden);

  Op& op_;
  const Places* places_;
  bool quantised_;
  std::string activation_;
  int64_t fusion_ = 0, bits_ = 4, block_ = 0;
  double alpha_ = 1, beta_ = 0;
  int64_t rows_ = 0, width_ = 0, count_ = 0, top_ = 1;
  int64_t sets_ = 0;         // weight sets used: all experts', or those chosen by each row
  bool few_ = false;         // the latter case
  Instr* x_ = nullptr;       // f32[rows,width]
  Instr* share_ = nullptr;   // weight of each choice in its row's result, f32[rows,top]
  Instr* choice_ = nullptr;  // s64[rows,top]
};

void Experts::read_attributes() {
  op_.check_float(0);
  activation_ = op_.string_attr("activation_type", "relu");
  fusion_ = op_.int_attr("swiglu_fusion", 0);
  alpha_ = op_.float_attr("activation_alpha", 1);
  beta_ = op_.float_attr("activation_beta", 0);
  top_ = op_.int_attr("k", 1);
  op_.ignore({"swiglu_limit"});  // read only where it applies
  if (op_.int_attr("use_sparse_mixer", 0) != 0) op_.fail("use_sparse_mixer is 1; wanted 0");
  if (op_.int_attr("swiglu_limit_after_activation", 0) != 0)
    op_.fail("swiglu_limit_after_activation is 1; wanted 0");
  if (fusion_ < 0 || fusion_ > 2 || (activation_ != "swiglu" && fusion_ != 0))
    op_.fail("swiglu_fusion is {} with activation {}", fusion_, quoted(activation_));
  if (op_.rank(0) != 2 && op_.rank(0) != 3)
    op_.fail("input is {}, wanted [rows,width] or [batch,sequence,width]", to_string(op_.shape(0)));
  width_ = op_.shape(0).dim(op_.rank(0) - 1);
  rows_ = product(op_.shape(0).extents(), 0, op_.rank(0) - 1);
  if (op_.rank(1) != 2 || op_.shape(1).dim(0) != rows_)
    op_.fail("router_probs is {}, wanted [{},experts]", to_string(op_.shape(1)), rows_);
  count_ = op_.shape(1).dim(1);
  if (top_ < 1 || top_ > count_) op_.fail("k is {} of {} experts", top_, count_);
  if (!quantised_) return;
  const std::string kind = op_.string_attr("quant_type", "int");
  if (kind != "int") op_.fail("quant_type is {}, wanted \"int\"", quoted(kind));
  bits_ = op_.int_attr("expert_weight_bits", 4);
  for (const char* name :
       {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"})
    if (op_.int_attr(name, bits_) != bits_) op_.fail("{} differs from expert_weight_bits", name);
  if (bits_ != 2 && bits_ != 4 && bits_ != 8) op_.fail("expert_weight_bits is {}", bits_);
  block_ = std::max<int64_t>(0, op_.int_attr("block_size", 0));
  if (op_.int_attr("weights_prepacked", 0) > 0) op_.fail("weights_prepacked is 1; wanted 0 or -1");
  op_.ignore({"accuracy_level"});  // permits lower accuracy
  for (size_t i = 14; i < op_.inputs(); ++i) contrib::refuse(op_, i, "not of integer weights");
}

// The highest scores of each row, and their softmax: among themselves, or among all.
void Experts::choose() {
  Instr* scores = op_.b.convert(op_.in(1), Type::f32);
  const bool among_chosen = op_.int_attr("normalize_routing_weights", 0) != 0;
  std::deque<Value> inputs(2);
  inputs[0].instr = scores;
  inputs[1].literal = ints_literal({top_});
  Op inner(op_, 11, {&inputs[0], &inputs[1]});
  proto::Node node;
  node.op_type = "TopK";
  const Outputs found = find_op(node)->handler(inner);
  choice_ = found[1].instr;
  Instr* largest = op_.b.reduce(Opcode::maximum, scores, {1});
  const auto exponential = [&](Instr* x) {
    Instr* back = broadcast_back(op_, largest, x->shape().extents(), {1});
    return op_.b.unary(Opcode::exponential, op_.b.binary(Opcode::subtract, x, back));
  };
  share_ = exponential(found[0].instr);
  Instr* total = op_.b.reduce(Opcode::add, among_chosen ? share_ : exponential(scores), {1});
  share_ = op_.b.binary(Opcode::divide, share_, broadcast_back(op_, total, {rows_, top_}, {1}));
  few_ = 2 * rows_ * top_ <= count_;
  sets_ = few_ ? rows_ * top_ : count_;
}

// [sets,...]: the per-expert values of the weight sets used.
Instr* Experts::chosen_of(Instr* all) {
  return few_ ? op_.b.take(all, reshape(op_, choice_, {sets_}), 0) : all;
}

// One per scale: half of the range if none are given.
Instr* Experts::zero_points(const Places& at, const Ints& scales) {
  if (!op_.has(at.zeros)) return splat(op_, op_.b.scalar(Type::f32, 1 << (bits_ - 1)), scales);
  Ints wanted = scales;
  wanted[0] = count_;
  wanted.back() = (wanted.back() * bits_ + 7) / 8;
  if (op_.type(at.zeros) != Type::u8 || op_.shape(at.zeros).extents() != wanted)
    op_.fail("input {} is {}, wanted uint8 [{}]", at.zeros, to_string(op_.shape(at.zeros)),
             fmt::join(wanted, ","));
  return unpacked_numbers(op_, chosen_of(op_.in(at.zeros)), bits_, scales.back());
}

Instr* Experts::dequantised_weights(const Places& at, Instr* x, int64_t outputs, int64_t inputs) {
  const Ints extents{sets_, outputs, inputs};
  Ints scales{count_, outputs};
  if (block_ != 0) {
    if (inputs % block_ != 0) op_.fail("block_size is {} of {} inputs", block_, inputs);
    scales.push_back(inputs / block_);
  }
  if (!op_.has(at.scales) || op_.shape(at.scales).extents() != scales)
    op_.fail("input {} (scales) is not [{}]", at.scales, fmt::join(scales, ","));
  Instr* scale = chosen_of(scale_input(op_, at.scales, Type::f32, true));
  scales[0] = sets_;
  Instr* zero = zero_points(at, scales);
  const auto spread_out = [&](Instr* y) {
    if (block_ == 0) return op_.b.broadcast(y, extents, {0, 1});
    const Ints blocks{sets_, outputs, inputs / block_, block_};
    return reshape(op_, op_.b.broadcast(y, blocks, {0, 1, 2}), extents);
  };
  x = op_.b.binary(Opcode::subtract, unpacked_numbers(op_, x, bits_, inputs), spread_out(zero));
  return op_.b.binary(Opcode::multiply, x, spread_out(scale));
}

// f32[sets,outputs,inputs].
Instr* Experts::weights(const Places& at, int64_t outputs, int64_t inputs) {
  const int64_t each = quantised_ ? 8 / bits_ : 1;
  const Ints wanted{count_, outputs, (inputs + each - 1) / each};
  op_.check_extents({sets_, outputs, inputs});
  if (!op_.has(at.weights) || op_.shape(at.weights).extents() != wanted ||
      (quantised_ && op_.type(at.weights) != Type::u8))
    op_.fail("input {} (weights) is not {}[{}]", at.weights, quantised_ ? "uint8 " : "",
             fmt::join(wanted, ","));
  Instr* x = chosen_of(op_.in(at.weights));
  return quantised_ ? dequantised_weights(at, x, outputs, inputs) : op_.b.convert(x, Type::f32);
}

hlo::DotAttrs contracting(int64_t left, int64_t right, const Ints& batch) {
  hlo::DotAttrs attrs;
  attrs.lhs_batch_dims = attrs.rhs_batch_dims = batch;
  attrs.lhs_contracting_dims = {left};
  attrs.rhs_contracting_dims = {right};
  return attrs;
}

// The product of each set of weights with its rows: few: [sets,outputs], else [rows,sets,outputs].
Instr* Experts::first(const Places& at, int64_t outputs) {
  Instr* w = weights(at, outputs, width_);
  Instr* y = nullptr;
  if (few_) {
    Instr* x = reshape(op_, op_.b.broadcast(x_, {rows_, top_, width_}, {0, 2}), {sets_, width_});
    y = op_.b.dot(x, w, contracting(1, 2, {0}));
  } else {
    y = op_.b.dot(x_, reshape(op_, w, {sets_ * outputs, width_}), contracting(1, 1, {}));
    y = reshape(op_, y, {rows_, sets_, outputs});
  }
  if (!op_.has(at.bias)) return y;
  const Ints wanted{count_, outputs};
  if (op_.shape(at.bias).extents() != wanted)
    op_.fail("input {} (bias) is {}", at.bias, to_string(op_.shape(at.bias)));
  Instr* bias = op_.b.convert(chosen_of(op_.in(at.bias)), Type::f32);
  return op_.b.binary(Opcode::add, y, broadcast_to(op_, bias, y->shape().extents()));
}

Instr* Experts::activated(Instr* x) {
  const auto times = [&](Instr* a, Instr* b) { return op_.b.binary(Opcode::multiply, a, b); };
  const auto gated = [&](Instr* y, double alpha) {
    return times(
        y, op_.b.unary(Opcode::logistic, alpha == 1 ? y : binary(op_, Opcode::multiply, y, alpha)));
  };
  if (activation_ == "relu") return binary(op_, Opcode::maximum, x, 0);
  if (activation_ == "identity") return x;
  if (activation_ == "silu") return gated(x, 1);
  if (activation_ == "swiglu") return gated(x, alpha_);
  if (activation_ != "gelu")
    op_.fail("activation_type is {}, wanted relu, gelu, silu, swiglu or identity",
             quoted(activation_));
  return gelu_of(op_, x, tanh_of_gelu(op_, x));
}

// Applies the second matrix, and sums by share: [rows,width].
Instr* Experts::combined(Instr* hidden) {
  const Places& at = places_[1];
  const int64_t inner = hidden->shape().dim(hidden->shape().rank() - 1);
  Instr* w = weights(at, width_, inner);
  Instr* bias = nullptr;
  if (op_.has(at.bias)) {
    const Ints wanted{count_, width_};
    if (op_.shape(at.bias).extents() != wanted)
      op_.fail("input {} (bias) is {}", at.bias, to_string(op_.shape(at.bias)));
    bias = op_.b.convert(chosen_of(op_.in(at.bias)), Type::f32);
  }
  if (few_) {
    Instr* y = op_.b.dot(hidden, w, contracting(1, 2, {0}));
    if (bias != nullptr) y = op_.b.binary(Opcode::add, y, bias);
    const Ints apart{rows_, top_, width_};
    y = op_.b.binary(Opcode::multiply, reshape(op_, y, apart),
                     op_.b.broadcast(share_, apart, {0, 1}));
    return op_.b.reduce(Opcode::add, y, {1});
  }
  // The share of each expert in each row, 0 if it was not chosen.
  const Ints choices{rows_, top_, count_}, each{rows_, count_, inner};
  Instr* mine = compare(op_, Direction::eq, iota(op_, Type::s64, choices, 2),
                        op_.b.broadcast(op_.b.convert(choice_, Type::s64), choices, {0, 1}));
  Instr* share =
      select(op_, mine, op_.b.broadcast(share_, choices, {0, 1}), op_.b.scalar(Type::f32, 0));
  share = op_.b.reduce(Opcode::add, share, {1});
  hidden = op_.b.binary(Opcode::multiply, hidden, op_.b.broadcast(share, each, {0, 1}));
  w = reshape(op_, op_.b.transpose(w, {0, 2, 1}), {count_ * inner, width_});
  Instr* y = op_.b.dot(reshape(op_, hidden, {rows_, count_ * inner}), w, contracting(1, 0, {}));
  if (bias == nullptr) return y;
  return op_.b.binary(Opcode::add, y, op_.b.dot(share, bias, contracting(1, 0, {})));
}

Outputs Experts::run() {
  read_attributes();
  const Places& one = places_[0];
  if (!op_.has(one.weights) || op_.rank(one.weights) != 3)
    op_.fail("input {} (weights) is not [{},outputs,inputs]", one.weights, count_);
  const int64_t outputs = op_.shape(one.weights).dim(1);
  const bool fused = fusion_ != 0, third = op_.has(places_[2].weights);
  if (fused && (third || outputs % 2 != 0))
    op_.fail("swiglu_fusion is {}, with {} outputs{}", fusion_, outputs, third ? " and fc3" : "");
  if (activation_ == "swiglu" && !fused && !third) op_.fail("swiglu wants fc3 or swiglu_fusion");
  x_ = reshape(op_, op_.b.convert(op_.in(0), Type::f32), {rows_, width_});
  choose();
  Instr* gate = first(one, outputs);
  Instr* up = third ? first(places_[2], outputs) : nullptr;
  op_.check_builder();
  if (fused) {
    const Ints all = gate->shape().extents();
    Ints start(all.size(), 0), steps(all.size(), 1), limits = all;
    const auto part = [&](bool second) {
      start.back() = !second ? 0 : fusion_ == 1 ? 1 : outputs / 2;
      limits.back() = !second && fusion_ == 2 ? outputs / 2 : outputs;
      steps.back() = fusion_ == 1 ? 2 : 1;
      return op_.b.slice(gate, start, limits, steps);
    };
    Instr* x = part(false);
    up = part(true);
    gate = x;
  }
  if (activation_ == "swiglu" && op_.has_attr("swiglu_limit")) {
    const double limit = op_.float_attr("swiglu_limit", 0);
    gate = binary(op_, Opcode::minimum, gate, limit);
    up = binary(op_, Opcode::minimum, binary(op_, Opcode::maximum, up, -limit), limit);
  }
  if (activation_ == "swiglu" && beta_ != 0) up = binary(op_, Opcode::add, up, beta_);
  Instr* hidden = activated(gate);
  if (up != nullptr) hidden = op_.b.binary(Opcode::multiply, hidden, up);
  op_.check_builder();
  Instr* y = op_.b.convert(combined(hidden), op_.type(0));
  return {reshape(op_, y, op_.shape(0).extents())};
}

Outputs moe(Op& op) { return Experts(op, false).run(); }
Outputs qmoe(Op& op) { return Experts(op, true).run(); }

constexpr OpEntry kOps[] = {
    {"com.microsoft.MoE", 5, 8, moe},
    {"com.microsoft.QMoE", 6, 20, qmoe},
};

}  // namespace

std::span<const OpEntry> contrib_expert_ops() { return kOps; }

}  // namespace heddle::import
