// Activations: each in a form that neither overflows nor loses digits needlessly.
#include <cmath>
#include <limits>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

Outputs relu(Op& op) { return {binary(op, Opcode::maximum, op.in(0), 0)}; }

Outputs sigmoid(Op& op) {
  op.check_float(0);
  return {op.b.unary(Opcode::logistic, op.in(0))};
}

Instr* below_zero(Op& op, Instr* x) { return compare(op, Direction::lt, x, 0); }

// x where x >= 0, else `negative`.
Instr* positive_or(Op& op, Instr* x, Instr* negative) {
  return select(op, below_zero(op, x), negative, x);
}

Outputs leaky_relu(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 0.01);
  Instr* x = op.in(0);
  return {positive_or(op, x, binary(op, Opcode::multiply, x, alpha))};
}

// The slope broadcasts to x (unidirectional).
Outputs prelu(Op& op) {
  Instr* x = op.in(0);
  Instr* slope = op.in(1);
  const bool by_channel = op.opset() < 7 && op.rank(1) == 1 && op.rank(0) > 1;
  slope = by_channel && op.shape(1).dim(0) != 1
              ? broadcast_along(op, slope, op.shape(0).extents(), 1)
              : broadcast_to(op, slope, op.shape(0).extents());
  return {positive_or(op, x, op.b.binary(Opcode::multiply, x, slope))};
}

Outputs thresholded_relu(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 1.0);
  Instr* x = op.in(0);
  return {select(op, compare(op, Direction::gt, x, alpha), x, op.b.scalar(op.type(0), 0))};
}

Instr* exp_minus_one(Op& op, Instr* x) { return op.b.unary(Opcode::exponential_minus_one, x); }

Outputs elu(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 1.0);
  Instr* x = op.in(0);
  return {positive_or(op, x, binary(op, Opcode::multiply, exp_minus_one(op, x), alpha))};
}

Outputs celu(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 1.0);
  Instr* x = op.in(0);
  Instr* bent = exp_minus_one(op, binary(op, Opcode::divide, x, alpha));
  return {positive_or(op, x, binary(op, Opcode::multiply, bent, alpha))};
}

Outputs selu(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 1.67326319217681884765625);
  const double gamma = op.float_attr("gamma", 1.05070102214813232421875);
  op.ignore({"consumed_inputs"});
  Instr* x = op.in(0);
  Instr* bent = binary(op, Opcode::multiply, exp_minus_one(op, x), alpha);
  return {binary(op, Opcode::multiply, positive_or(op, x, bent), gamma)};
}

Instr* hard_sigmoid_of(Op& op, Instr* x, double alpha, double beta) {
  Instr* line = binary(op, Opcode::multiply, x, alpha);
  line = binary(op, Opcode::add, line, beta);
  line = binary(op, Opcode::maximum, line, 0);
  return binary(op, Opcode::minimum, line, 1);
}

Outputs hard_sigmoid(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 0.2);
  const double beta = op.float_attr("beta", 0.5);
  return {hard_sigmoid_of(op, op.in(0), alpha, beta)};
}

Outputs hard_swish(Op& op) {
  op.check_float(0);
  Instr* x = op.in(0);
  return {op.b.binary(Opcode::multiply, x, hard_sigmoid_of(op, x, 1.0 / 6, 0.5))};
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
Instr* softplus_of(Op& op, Instr* x) {
  Instr* small =
      op.b.unary(Opcode::exponential, op.b.unary(Opcode::negate, op.b.unary(Opcode::abs, x)));
  return op.b.binary(Opcode::add, binary(op, Opcode::maximum, x, 0),
                     op.b.unary(Opcode::log_plus_one, small));
}

Outputs softplus(Op& op) {
  op.check_float(0);
  return {softplus_of(op, op.in(0))};
}

Outputs softsign(Op& op) {
  op.check_float(0);
  Instr* x = op.in(0);
  Instr* below = binary(op, Opcode::add, op.b.unary(Opcode::abs, x), 1);
  return {op.b.binary(Opcode::divide, x, below)};
}

Outputs mish(Op& op) {
  op.check_float(0);
  Instr* x = op.in(0);
  return {op.b.binary(Opcode::multiply, x, op.b.unary(Opcode::tanh, softplus_of(op, x)))};
}

Outputs swish(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 1.0);
  Instr* x = op.in(0);
  Instr* scaled = alpha == 1.0 ? x : binary(op, Opcode::multiply, x, alpha);
  return {op.b.binary(Opcode::multiply, x, op.b.unary(Opcode::logistic, scaled))};
}

// x sigmoid(alpha x) times the second input.
Outputs swiglu(Op& op) {
  if (!(op.shape(0) == op.shape(1)))
    op.fail("inputs are {} and {}; wanted one shape", to_string(op.shape(0)),
            to_string(op.shape(1)));
  return {op.b.binary(Opcode::multiply, swish(op).front().instr, op.in(1))};
}

// 0.5 x (1 + erf(x / sqrt 2)), or by tanh.
Outputs gelu(Op& op) {
  op.check_float(0);
  const std::string approximate = op.string_attr("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    op.fail("approximate is {}, wanted 'none' or 'tanh'", quoted(approximate));
  const Type type = op.type(0);
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  Instr* inner;
  if (approximate == "none") {
    inner = op.b.unary(Opcode::erf, binary(op, Opcode::multiply, x, 1 / std::sqrt(2.0)));
  } else {
    inner = tanh_of_gelu(op, x);
  }
  return {op.b.convert(gelu_of(op, x, inner), type)};
}

Outputs shrink(Op& op) {
  const double bias = op.float_attr("bias", 0.0);
  const double lambd = op.float_attr("lambd", 0.5);
  Instr* x = op.in(0);
  Instr* low = compare(op, Direction::lt, x, -lambd);
  Instr* high = compare(op, Direction::gt, x, lambd);
  Instr* inside = select(op, high, binary(op, Opcode::subtract, x, bias),
                         op.b.full(Shape::array(op.type(0), op.shape(0).extents()), 0));
  return {select(op, low, binary(op, Opcode::add, x, bias), inside)};
}

// Bounds are attributes before opset 11, inputs from then on; either may be missing.
Outputs clip(Op& op) {
  Instr* x = op.in(0);
  const auto bound = [&](Opcode opcode, size_t input, const char* name) {
    if (op.opset() < 11) {
      if (!op.has_attr(name)) return;
      x = binary(op, opcode, x, op.float_attr(name, 0));
    } else if (op.has(input)) {
      if (op.shape(input).elems() != 1)
        op.fail("input {} ({}) is {}, wanted a scalar", input, name, to_string(op.shape(input)));
      x = op.b.binary(opcode, x, splat(op, reshape(op, op.in(input), {}), op.shape(0).extents()));
    }
  };
  bound(Opcode::maximum, 1, "min");
  bound(Opcode::minimum, 2, "max");
  return {x};
}

constexpr OpEntry kOps[] = {
    {"Celu", 1, 1, celu},
    {"Clip", 1, 3, clip},
    {"Elu", 1, 1, elu},
    {"Gelu", 1, 1, gelu},
    {"HardSigmoid", 1, 1, hard_sigmoid},
    {"HardSwish", 1, 1, hard_swish},
    {"LeakyRelu", 1, 1, leaky_relu},
    {"Mish", 1, 1, mish},
    {"PRelu", 2, 2, prelu},
    {"Relu", 1, 1, relu},
    {"Selu", 1, 1, selu},
    {"Shrink", 1, 1, shrink},
    {"Sigmoid", 1, 1, sigmoid},
    {"Softplus", 1, 1, softplus},
    {"Softsign", 1, 1, softsign},
    {"SwiGLU", 2, 2, swiglu},
    {"Swish", 1, 1, swish},
    {"ThresholdedRelu", 1, 1, thresholded_relu},
};

}  // namespace

std::span<const OpEntry> activation_ops() { return kOps; }

}  // namespace heddle::import
