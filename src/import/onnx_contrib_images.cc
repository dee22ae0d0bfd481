// Operators of com.microsoft that ONNX Runtime's optimiser uses in diffusion models: features last,
// biases and activations fused with their producers.
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// One number per feature, broadcast to a value of these extents.
Instr* of_features(Op& op, size_t input, const Ints& extents, int64_t axis, Type type) {
  const int64_t features = extents[static_cast<size_t>(axis)];
  if (op.rank(input) != 1 || op.shape(input).dim(0) != features ||
      !tensor::is_float(op.type(input)))
    op.fail("input {} is {}, wanted [{}]", input, to_string(op.shape(input)), features);
  return broadcast_along(op, op.b.convert(op.in(input), type), extents, axis);
}

// ---- GroupNorm, SkipGroupNorm ----

// (x - mean) / deviation for each group of features, scaled and shifted; then SiLU if requested.
Instr* by_groups(Op& op, Instr* x) {
  const int64_t groups = op.int_attr("groups", 0), activation = op.int_attr("activation", 0);
  const double epsilon = op.float_attr("epsilon", 1e-5);
  const Ints extents = x->shape().extents();
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t axis = op.int_attr("channels_last", 1) != 0 ? rank - 1 : 1;
  const int64_t features = extents[static_cast<size_t>(axis)];
  if (groups < 1 || features % groups != 0) op.fail("{} groups of {} features", groups, features);
  if (activation != 0 && activation != 1) op.fail("activation is {}, wanted 0 or 1", activation);
  Ints apart = extents;
  apart[static_cast<size_t>(axis)] = groups;
  apart.insert(apart.begin() + axis + 1, features / groups);
  Ints dims = range(1, rank + 1);
  std::erase(dims, axis);
  Instr* y = reshape(op, x, apart);
  Instr* centre = mean(op, y, dims);
  y = op.b.binary(Opcode::subtract, y, broadcast_back(op, centre, apart, dims));
  Instr* variance = mean(op, op.b.binary(Opcode::multiply, y, y), dims);
  Instr* inverse = op.b.unary(Opcode::rsqrt, binary(op, Opcode::add, variance, epsilon));
  y = op.b.binary(Opcode::multiply, y, broadcast_back(op, inverse, apart, dims));
  y = reshape(op, y, extents);
  const Type type = x->shape().type();
  y = op.b.binary(Opcode::multiply, y, of_features(op, 1, extents, axis, type));
  y = op.b.binary(Opcode::add, y, of_features(op, 2, extents, axis, type));
  return activation == 0 ? y : op.b.binary(Opcode::multiply, y, op.b.unary(Opcode::logistic, y));
}

void check_image(Op& op) {
  op.check_float(0);
  if (op.rank(0) < 3) op.fail("X is {}, wanted [batch,...,features]", to_string(op.shape(0)));
}

Outputs group_norm(Op& op) {
  check_image(op);
  Instr* x = op.b.convert(op.in(0), compute_type(op.type(0)));
  return {op.b.convert(by_groups(op, x), op.type(0))};
}

// Normalises X + skip + bias; the skip may be the same for all positions. The sum is the second
// output.
Outputs skip_group_norm(Op& op) {
  check_image(op);
  const Type type = compute_type(op.type(0));
  const Ints extents = op.shape(0).extents();
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t axis = op.int_attr("channels_last", 1) != 0 ? rank - 1 : 1;
  Instr* skip = op.b.convert(op.in(3), type);
  const Ints one{extents[0], extents[static_cast<size_t>(axis)]};
  if (op.shape(3).extents() == one) {
    skip = op.b.broadcast(skip, extents, {0, axis});
  } else {
    skip = broadcast_to(op, skip, extents);
  }
  Instr* sum = op.b.binary(Opcode::add, op.b.convert(op.in(0), type), skip);
  if (op.has(4)) sum = op.b.binary(Opcode::add, sum, of_features(op, 4, extents, axis, type));
  return {op.b.convert(by_groups(op, sum), op.type(0)), op.b.convert(sum, op.type(0))};
}

// ---- biases ----

// The first half of the features times the GELU of the second.
Outputs bias_split_gelu(Op& op) {
  check_image(op);
  const Type type = compute_type(op.type(0));
  const Ints extents = op.shape(0).extents();
  const int64_t features = extents.back();
  if (features % 2 != 0) op.fail("X is {}: {} features", to_string(op.shape(0)), features);
  const auto axis = static_cast<int64_t>(extents.size()) - 1;
  Instr* x = op.b.binary(Opcode::add, op.b.convert(op.in(0), type),
                         of_features(op, 1, extents, axis, type));
  const auto half = [&](int64_t from) {
    Ints starts(extents.size(), 0), limits = extents;
    starts.back() = from;
    limits.back() = from + features / 2;
    return op.b.slice(x, starts, limits, {});
  };
  Instr* gate = half(features / 2);
  Instr* erf = op.b.unary(Opcode::erf, binary(op, Opcode::multiply, gate, 1 / std::sqrt(2.0)));
  gate = op.b.binary(Opcode::multiply, binary(op, Opcode::multiply, gate, 0.5),
                     binary(op, Opcode::add, erf, 1));
  return {op.b.convert(op.b.binary(Opcode::multiply, half(0), gate), op.type(0))};
}

Outputs bias_add(Op& op) {
  check_image(op);
  const Ints extents = op.shape(0).extents();
  if (op.shape(2).extents() != extents || op.type(2) != op.type(0))
    op.fail("skip is {}, X {}", to_string(op.shape(2)), to_string(op.shape(0)));
  const auto axis = static_cast<int64_t>(extents.size()) - 1;
  Instr* x = op.b.binary(Opcode::add, op.in(0), of_features(op, 1, extents, axis, op.type(0)));
  return {op.b.binary(Opcode::add, x, op.in(2))};
}

// ---- NhwcConv ----

// X [N,H,W,C], weights [M,kH,kW,C/group].
Outputs nhwc_conv(Op& op) {
  check_image(op);
  const int64_t rank = op.rank(0);
  if (op.rank(1) != rank || op.type(1) != op.type(0))
    op.fail("W is {}, X {}", to_string(op.shape(1)), to_string(op.shape(0)));
  Ints first{0, rank - 1}, last{0};
  for (int64_t d = 1; d + 1 < rank; ++d) first.push_back(d);
  for (int64_t d = 2; d < rank; ++d) last.push_back(d);
  last.push_back(1);
  Instr* y = convolve(op, op.b.transpose(op.in(0), first), op.b.transpose(op.in(1), first));
  y = op.b.transpose(y, last);
  op.check_builder();
  if (!op.has(2)) return {y};
  return {
      op.b.binary(Opcode::add, y, of_features(op, 2, y->shape().extents(), rank - 1, op.type(0)))};
}

constexpr OpEntry kOps[] = {
    {"com.microsoft.BiasAdd", 3, 3, bias_add},
    {"com.microsoft.BiasSplitGelu", 2, 2, bias_split_gelu},
    {"com.microsoft.GroupNorm", 3, 3, group_norm},
    {"com.microsoft.NhwcConv", 2, 3, nhwc_conv},
    {"com.microsoft.SkipGroupNorm", 4, 5, skip_group_norm},
};

}  // namespace

std::span<const OpEntry> contrib_image_ops() { return kOps; }

}  // namespace heddle::import
