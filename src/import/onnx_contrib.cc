// Operators of the domain com.microsoft in optimised and fused exports, in floating point: products
// with epilogues, GELUs, normalisations of sums. onnx_contrib_attention.cc has attention.
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// ---- products ----

// [b0, ..., m, k] from [m, b0, ..., k].
Instr* rows_behind_batch(Op& op, Instr* x) {
  const int64_t rank = x->shape().rank();
  if (rank < 3) return x;
  Ints order = range(1, rank - 1);
  order.push_back(0);
  order.push_back(rank - 1);
  return op.b.transpose(x, order);
}

Instr* swapped(Op& op, Instr* x) {
  const int64_t rank = x->shape().rank();
  if (rank < 2) return x;
  Ints order = range(0, rank - 2);
  order.push_back(rank - 1);
  order.push_back(rank - 2);
  return op.b.transpose(x, order);
}

Outputs fused_matmul(Op& op) {
  const double alpha = op.float_attr("alpha", 1.0);
  const auto side = [&](size_t i, const char* matrix, const char* batch) {
    Instr* x = op.in(i);
    if (op.int_attr(batch, 0) != 0) x = rows_behind_batch(op, x);
    return op.int_attr(matrix, 0) != 0 ? swapped(op, x) : x;
  };
  Instr* a = side(0, "transA", "transBatchA");
  Instr* b = side(1, "transB", "transBatchB");
  if (op.type(0) != op.type(1))
    op.fail("A is {}, B is {}", to_string(op.shape(0)), to_string(op.shape(1)));
  Instr* y = matrix_product(op, a, b);
  return {alpha == 1 ? y : binary(op, Opcode::multiply, y, alpha)};
}

// The activation in the epilogue of a fused product; its parameters in the operator's order.
Instr* activated(Op& op, Instr* x, const std::string& name, const std::vector<float>& parameters) {
  const auto parameter = [&](size_t i, double otherwise) {
    return i < parameters.size() ? static_cast<double>(parameters[i]) : otherwise;
  };
  if (name.empty()) return x;
  if (name == "Relu") return binary(op, Opcode::maximum, x, 0);
  if (name == "Tanh") return op.b.unary(Opcode::tanh, x);
  if (name == "Sigmoid") return op.b.unary(Opcode::logistic, x);
  if (name == "LeakyRelu")
    return select(op, compare(op, Direction::lt, x, 0),
                  binary(op, Opcode::multiply, x, parameter(0, 0.01)), x);
  if (name == "Clip")
    return binary(op, Opcode::minimum,
                  binary(op, Opcode::maximum, x, parameter(0, -3.402823466e38)),
                  parameter(1, 3.402823466e38));
  if (name == "HardSigmoid") {
    Instr* line = binary(op, Opcode::add, binary(op, Opcode::multiply, x, parameter(0, 0.2)),
                         parameter(1, 0.5));
    return binary(op, Opcode::minimum, binary(op, Opcode::maximum, line, 0), 1);
  }
  op.fail("activation is {}, wanted Relu, Tanh, Sigmoid, LeakyRelu, Clip or HardSigmoid",
          quoted(name));
}

// activation(conv(X, W) + B + Z)
Outputs fused_conv(Op& op) {
  const std::string activation = op.string_attr("activation", "");
  const std::vector<float> parameters = op.floats_attr("activation_params");
  Instr* y = convolve(op, op.in(0), op.in(1));
  const Ints extents = y->shape().extents();
  if (op.has(2)) {
    if (op.rank(2) != 1 || op.shape(2).dim(0) != extents[1] || op.type(2) != op.type(0))
      op.fail("B is {}, wanted [{}]", to_string(op.shape(2)), extents[1]);
    y = op.b.binary(Opcode::add, y, broadcast_along(op, op.in(2), extents, 1));
  }
  if (op.has(3)) {
    if (op.shape(3).extents() != extents || op.type(3) != op.type(0))
      op.fail("Z is {}, wanted [{}]", to_string(op.shape(3)), fmt::join(extents, ","));
    y = op.b.binary(Opcode::add, y, op.in(3));
  }
  return {activated(op, y, activation, parameters)};
}

// activation(alpha A' B' + beta C)
Outputs fused_gemm(Op& op) {
  const double alpha = op.float_attr("alpha", 1.0), beta = op.float_attr("beta", 1.0);
  const std::string activation = op.string_attr("activation", "");
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (op.has_attr(name)) parameters.push_back(static_cast<float>(op.float_attr(name, 0)));
  if (op.rank(0) != 2 || op.rank(1) != 2 || op.type(0) != op.type(1))
    op.fail("A is {}, B is {}: wanted matrices of one type", to_string(op.shape(0)),
            to_string(op.shape(1)));
  Instr* a = op.int_attr("transA", 0) != 0 ? swapped(op, op.in(0)) : op.in(0);
  Instr* b = op.int_attr("transB", 0) != 0 ? swapped(op, op.in(1)) : op.in(1);
  Instr* y = matrix_product(op, a, b);
  op.check_builder();
  if (alpha != 1) y = binary(op, Opcode::multiply, y, alpha);
  if (op.has(2) && beta != 0) {
    if (op.type(2) != op.type(0)) op.fail("C is {}", to_string(op.shape(2)));
    Instr* c = broadcast_to(op, op.in(2), y->shape().extents());
    y = op.b.binary(Opcode::add, y, beta == 1 ? c : binary(op, Opcode::multiply, c, beta));
  }
  return {activated(op, y, activation, parameters)};
}

// ---- GELUs ----

Instr* biased(Op& op) {
  op.check_float(0);
  Instr* x = op.in(0);
  if (op.has(1)) {
    if (op.type(1) != op.type(0)) op.fail("the bias is {}", to_string(op.shape(1)));
    x = op.b.binary(Opcode::add, x, broadcast_to(op, op.in(1), op.shape(0).extents()));
  }
  return op.b.convert(x, compute_type(op.type(0)));
}

// 0.5 x (1 + inner)
Outputs half_of(Op& op, Instr* x, Instr* inner) {
  return {op.b.convert(gelu_of(op, x, inner), op.type(0))};
}

Outputs bias_gelu(Op& op) {
  Instr* x = biased(op);
  return half_of(op, x,
                 op.b.unary(Opcode::erf, binary(op, Opcode::multiply, x, 1 / std::sqrt(2.0))));
}

Outputs fast_gelu(Op& op) {
  Instr* x = biased(op);
  return half_of(op, x, tanh_of_gelu(op, x));
}

Outputs quick_gelu(Op& op) {
  op.check_float(0);
  const double alpha = op.float_attr("alpha", 1.702);
  Instr* x = op.in(0);
  return {op.b.binary(Opcode::multiply, x,
                      op.b.unary(Opcode::logistic, binary(op, Opcode::multiply, x, alpha)))};
}

// ---- normalisations ----

struct Normalised {
  Instr *value, *mean, *inverse_deviation;  // the last two with extents of 1; mean: null if `plain`
};

// Over the dimensions `dims`; `plain`: divides by the root mean square, without subtracting the
// mean.
Normalised normalise(Op& op, Instr* x, const Ints& dims, double epsilon, bool plain) {
  const Ints extents = x->shape().extents(), kept = keeping(extents, dims);
  Normalised result{};
  if (!plain) {
    Instr* centre = mean(op, x, dims);
    x = op.b.binary(Opcode::subtract, x, broadcast_back(op, centre, extents, dims));
    result.mean = reshape(op, centre, kept);
  }
  Instr* variance = mean(op, op.b.binary(Opcode::multiply, x, x), dims);
  Instr* inverse = op.b.unary(Opcode::rsqrt, binary(op, Opcode::add, variance, epsilon));
  result.value = op.b.binary(Opcode::multiply, x, broadcast_back(op, inverse, extents, dims));
  result.inverse_deviation = reshape(op, inverse, kept);
  return result;
}

Instr* scaled(Op& op, Instr* y, size_t scale, size_t shift) {
  const Ints extents = y->shape().extents();
  const auto spread = [&](size_t i) {
    return broadcast_to(op, op.b.convert(op.in(i), y->shape().type()), extents);
  };
  if (op.has(scale)) y = op.b.binary(Opcode::multiply, y, spread(scale));
  if (op.has(shift)) y = op.b.binary(Opcode::add, y, spread(shift));
  return y;
}

constexpr size_t kNone = 1 << 20;  // no such input

// input, skip, gamma, [beta,] bias -> output, mean, inverse deviation, sum.
Outputs skip_normalization(Op& op, bool plain) {
  op.check_float(0);
  const double epsilon = op.float_attr("epsilon", plain ? 1e-5 : 1e-12);
  const size_t beta = plain ? kNone : 3, bias = plain ? 3 : 4;
  const Type type = op.type(0);
  const Ints extents = op.shape(0).extents();
  if (extents.empty()) op.fail("input is a scalar");
  Instr* sum = op.b.convert(op.in(0), compute_type(type));
  for (size_t i : {size_t{1}, bias}) {
    if (!op.has(i)) continue;
    Instr* other = op.b.convert(op.in(i), compute_type(type));
    sum = op.b.binary(Opcode::add, sum, broadcast_to(op, other, extents));
  }
  const Normalised normal =
      normalise(op, sum, {static_cast<int64_t>(extents.size()) - 1}, epsilon, plain);
  Instr* y = op.b.convert(scaled(op, normal.value, 2, beta), type);
  Instr* centre = plain ? normal.inverse_deviation : normal.mean;
  if (plain && op.wants(1)) op.fail("output 1 (mean) does not exist without a mean");
  return {y, centre, normal.inverse_deviation, op.b.convert(sum, type)};
}

Outputs skip_layer_normalization(Op& op) { return skip_normalization(op, false); }
Outputs skip_simplified_layer_normalization(Op& op) { return skip_normalization(op, true); }

// RMS normalisation, which the runtime's optimiser writes into the default domain.
Outputs simplified_layer_normalization(Op& op) {
  op.check_float(0);
  op.ignore({"stash_type"});
  const int64_t axis = op.axis_attr(-1, op.rank(0));
  const double epsilon = op.float_attr("epsilon", 1e-5);
  const Type type = op.type(0);
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  const Normalised normal = normalise(op, x, range(axis, op.rank(0)), epsilon, true);
  return {op.b.convert(scaled(op, normal.value, 1, kNone), type), normal.inverse_deviation};
}

// Rows of a table; negative ids do not count from the end.
Instr* embedded(Op& op, size_t table, size_t ids, const Ints& extents) {
  if (op.rank(table) != 2)
    op.fail("input {} is {}, wanted a table", table, to_string(op.shape(table)));
  if (!tensor::is_integer(op.type(ids)))
    op.fail("input {} is {}, wanted integers", ids, to_string(op.shape(ids)));
  op.demand(ids, {{0, op.shape(table).dim(0) - 1}});
  return op.b.take(op.in(table), broadcast_to(op, op.in(ids), extents), 0);
}

// The normalised sum of word, position and segment embeddings; and the number of ones in each row
// of the mask.
Outputs embed_layer_normalization(Op& op) {
  const double epsilon = op.float_attr("epsilon", 1e-12);
  op.ignore({"mask_index_type"});
  if (op.rank(0) != 2 || !tensor::is_integer(op.type(0)))
    op.fail("input_ids is {}, wanted [batch,sequence]", to_string(op.shape(0)));
  const Ints ids = op.shape(0).extents();
  Instr* sum = embedded(op, 2, 0, ids);
  const Ints extents{ids[0], ids[1], op.shape(2).dim(1)};
  if (op.has(8)) {
    if (op.rank(8) != 2) op.fail("position_ids is {}", to_string(op.shape(8)));
    sum = op.b.binary(Opcode::add, sum, embedded(op, 3, 8, ids));
  } else {
    if (op.rank(3) != 2) op.fail("input 3 is {}, wanted a table", to_string(op.shape(3)));
    if (op.shape(3).dim(0) < ids[1])
      op.fail("{} positions, and sequences of {}", op.shape(3).dim(0), ids[1]);
    Instr* positions = op.b.slice(op.in(3), {0, 0}, {ids[1], op.shape(3).dim(1)}, {});
    op.check_builder();
    sum = op.b.binary(Opcode::add, sum, broadcast_to(op, positions, extents));
  }
  if (op.has(1) && op.has(4)) sum = op.b.binary(Opcode::add, sum, embedded(op, 4, 1, ids));
  op.check_builder();
  const Type type = sum->shape().type();
  const Normalised normal =
      normalise(op, op.b.convert(sum, compute_type(type)), {2}, epsilon, false);
  Instr* y = op.b.convert(scaled(op, normal.value, 5, 6), type);
  Instr* counts = op.b.full(Shape::array(Type::s32, {ids[0]}), 0);
  if (op.has(7)) {
    if (op.shape(7).extents() != ids) op.fail("mask is {}", to_string(op.shape(7)));
    Instr* ones = op.b.convert(compare(op, Direction::eq, op.in(7), 1), Type::s32);
    counts = op.b.reduce(Opcode::add, ones, {1});
  }
  return {y, counts, sum};
}

// The ONNX operator of the same name, in the version of that opset.
Outputs as_in_onnx(Op& op, int64_t opset) {
  std::vector<Value*> inputs;
  for (size_t i = 0; i < op.inputs(); ++i) inputs.push_back(op.has(i) ? op.value(i) : nullptr);
  Op inner(op, opset, std::move(inputs));
  proto::Node node;
  node.op_type = op.node().op_type;
  const OpEntry* entry = find_op(node);
  HEDDLE_CHECK(entry, "no operator {}", node.op_type);
  Outputs outputs = entry->handler(inner);
  inner.add_reads_to(op);
  for (const IndexDemand& demand : inner.take_demands()) op.demand(demand.indices, demand.ranges);
  for (std::string& text : inner.take_notes()) op.note(std::move(text));
  return outputs;
}

Outputs as_in_set_13(Op& op) { return as_in_onnx(op, 13); }
Outputs as_in_set_14(Op& op) { return as_in_onnx(op, 14); }

Outputs expand_dims(Op& op) {
  const int64_t axis = op.axis(op.known_int(1, "axis"), op.rank(0) + 1);
  Ints extents = op.shape(0).extents();
  extents.insert(extents.begin() + axis, 1);
  return {reshape(op, op.in(0), extents)};
}

constexpr OpEntry kOps[] = {
    {"SimplifiedLayerNormalization", 2, 2, simplified_layer_normalization},
    {"com.microsoft.BiasGelu", 2, 2, bias_gelu},
    {"com.microsoft.EmbedLayerNormalization", 7, 9, embed_layer_normalization},
    {"com.microsoft.ExpandDims", 2, 2, expand_dims},
    {"com.microsoft.FastGelu", 1, 2, fast_gelu},
    {"com.microsoft.FusedConv", 2, 4, fused_conv},
    {"com.microsoft.FusedGemm", 2, 3, fused_gemm},
    {"com.microsoft.FusedMatMul", 2, 2, fused_matmul},
    {"com.microsoft.GatherND", 2, 2, as_in_set_13},
    {"com.microsoft.Gelu", 1, 1, bias_gelu},
    {"com.microsoft.Pad", 2, 3, as_in_set_13},
    {"com.microsoft.QuickGelu", 1, 1, quick_gelu},
    {"com.microsoft.SkipLayerNormalization", 3, 5, skip_layer_normalization},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, skip_simplified_layer_normalization},
    {"com.microsoft.TransposeMatMul", 2, 2, fused_matmul},
    {"com.microsoft.Trilu", 1, 2, as_in_set_14},
};

}  // namespace

std::span<const OpEntry> contrib_ops() { return kOps; }

}  // namespace heddle::import
