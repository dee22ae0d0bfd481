// Normalisations and softmax, decomposed: the maximum is subtracted before exponentials, mean and
// variance take two passes, half precision is computed in f32.
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// Before opset 13 all dimensions from the axis on count as one.
Ints softmax_dims(Op& op) {
  const int64_t rank = op.rank(0);
  if (rank == 0) return {};
  if (op.opset() >= 13) return {op.axis_attr(-1, rank)};
  int64_t axis = op.int_attr("axis", 1);
  if (axis == rank && rank == 1) axis = 0;
  return range(op.axis(axis, rank), rank);
}

struct Softmax {
  Instr* centred;  // x - max
  Instr* total;    // sum of exponentials, broadcast back
  Instr* exponentials;
};

Softmax softmax_parts(Op& op, Instr* x, const Ints& dims) {
  const Ints extents = x->shape().extents();
  Instr* largest = op.b.reduce(Opcode::maximum, x, dims);
  Softmax parts;
  parts.centred = op.b.binary(Opcode::subtract, x, broadcast_back(op, largest, extents, dims));
  parts.exponentials = op.b.unary(Opcode::exponential, parts.centred);
  parts.total =
      broadcast_back(op, op.b.reduce(Opcode::add, parts.exponentials, dims), extents, dims);
  return parts;
}

Outputs softmax(Op& op) {
  op.check_float(0);
  const Ints dims = softmax_dims(op);
  const Type type = op.type(0);
  const Softmax parts = softmax_parts(op, op.b.convert(op.in(0), compute_type(type)), dims);
  return {op.b.convert(op.b.binary(Opcode::divide, parts.exponentials, parts.total), type)};
}

Outputs log_softmax(Op& op) {
  op.check_float(0);
  const Ints dims = softmax_dims(op);
  const Type type = op.type(0);
  const Softmax parts = softmax_parts(op, op.b.convert(op.in(0), compute_type(type)), dims);
  Instr* log = op.b.unary(Opcode::log, parts.total);
  return {op.b.convert(op.b.binary(Opcode::subtract, parts.centred, log), type)};
}

struct Normalised {
  Instr* value;
  Instr* mean;               // reduced; null: not subtracted
  Instr* inverse_deviation;  // reduced
};

// (x - mean) / sqrt(variance + epsilon) over the dimensions; or x / sqrt(mean of squares +
// epsilon).
Normalised normalise(Op& op, Instr* x, const Ints& dims, double epsilon, bool centre = true) {
  const Ints extents = x->shape().extents();
  Normalised result{};
  if (centre) {
    result.mean = mean(op, x, dims);
    x = op.b.binary(Opcode::subtract, x, broadcast_back(op, result.mean, extents, dims));
  }
  Instr* variance = mean(op, op.b.binary(Opcode::multiply, x, x), dims);
  result.inverse_deviation = op.b.unary(Opcode::rsqrt, binary(op, Opcode::add, variance, epsilon));
  result.value =
      op.b.binary(Opcode::multiply, x, broadcast_back(op, result.inverse_deviation, extents, dims));
  return result;
}

// y * scale + bias, each as given by the node, in y's type.
Instr* scale_and_shift(Op& op, Instr* y, size_t scale, size_t bias) {
  const Ints extents = y->shape().extents();
  const Type type = y->shape().type();
  const auto spread = [&](size_t i) {
    return broadcast_to(op, op.b.convert(op.in(i), type), extents);
  };
  if (op.has(scale)) y = op.b.binary(Opcode::multiply, y, spread(scale));
  if (op.has(bias)) y = op.b.binary(Opcode::add, y, spread(bias));
  return y;
}

// stash_type: the type of the first stage; half precision is always computed in f32 here.
void check_stash(Op& op) {
  const int64_t stash = op.int_attr("stash_type", 1);
  if (stash != 1 && stash != 10 && stash != 11 && stash != 16)
    op.fail("stash_type {} is not a floating point type", stash);
}

Outputs layer_normalization(Op& op) {
  op.check_float(0);
  check_stash(op);
  const int64_t axis = op.axis_attr(-1, op.rank(0));
  const double epsilon = op.float_attr("epsilon", 1e-5);
  const Type type = op.type(0);
  const Ints dims = range(axis, op.rank(0));
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  const Normalised normal = normalise(op, x, dims, epsilon);
  // Scale and bias are applied in the input's type.
  Instr* y = scale_and_shift(op, op.b.convert(normal.value, type), 1, 2);
  const Ints kept = keeping(op.shape(0).extents(), dims);
  return {y, reshape(op, normal.mean, kept), reshape(op, normal.inverse_deviation, kept)};
}

Outputs rms_normalization(Op& op) {
  op.check_float(0);
  check_stash(op);
  const int64_t axis = op.axis_attr(-1, op.rank(0));
  const double epsilon = op.float_attr("epsilon", 1e-5);
  const Type type = op.type(0);
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  const Normalised normal = normalise(op, x, range(axis, op.rank(0)), epsilon, false);
  return {scale_and_shift(op, op.b.convert(normal.value, type), 1, 2)};
}

void check_channels(Op& op, size_t input) {
  if (op.rank(input) != 1 || op.shape(input).dim(0) != op.shape(0).dim(1))
    op.fail("input {} is {}, wanted [{}] (a number for each channel)", input,
            to_string(op.shape(input)), op.shape(0).dim(1));
}

void check_image(Op& op, int64_t least_rank) {
  op.check_float(0);
  if (op.rank(0) < least_rank) op.fail("input is {}, wanted [N,C,...]", to_string(op.shape(0)));
}

// Uses the batch's statistics, and updates the running ones with them.
Outputs train_batch_normalization(Op& op, double epsilon, double momentum) {
  const Type type = op.type(0), compute = compute_type(type);
  const Ints extents = op.shape(0).extents();
  Ints dims = range(0, op.rank(0));
  dims.erase(dims.begin() + 1);
  Instr* x = op.b.convert(op.in(0), compute);
  Instr* centre = mean(op, x, dims);
  Instr* y = op.b.binary(Opcode::subtract, x, broadcast_along(op, centre, extents, 1));
  Instr* variance = mean(op, op.b.binary(Opcode::multiply, y, y), dims);
  Instr* factor = op.b.unary(Opcode::rsqrt, binary(op, Opcode::add, variance, epsilon));
  factor = op.b.binary(Opcode::multiply, factor, op.b.convert(op.in(1), compute));
  y = op.b.binary(Opcode::multiply, y, broadcast_along(op, factor, extents, 1));
  y = op.b.binary(Opcode::add, y, broadcast_along(op, op.b.convert(op.in(2), compute), extents, 1));
  const auto running = [&](size_t i, Instr* fresh) {
    const Type kept = op.type(i);
    return op.b.binary(Opcode::add, binary(op, Opcode::multiply, op.in(i), momentum),
                       binary(op, Opcode::multiply, op.b.convert(fresh, kept), 1 - momentum));
  };
  return {op.b.convert(y, type), running(3, centre), running(4, variance)};
}

// Inference: x * a + c with a = scale / sqrt(var + epsilon), c = bias - mean * a per channel.
Outputs batch_normalization(Op& op) {
  check_image(op, 2);
  const double epsilon = op.float_attr("epsilon", 1e-5), momentum = op.float_attr("momentum", 0.9);
  op.ignore({"consumed_inputs"});
  if (op.opset() < 7) op.ignore({"is_test"});  // training has more outputs
  if (op.int_attr("spatial", 1) != 1) op.fail("spatial is 0; wanted statistics by channel");
  for (size_t i = 1; i <= 4; ++i) check_channels(op, i);
  if (op.int_attr("training_mode", 0) != 0) {
    if (op.opset() < 14) op.fail("training_mode is 1; it exists from opset 14 on");
    return train_batch_normalization(op, epsilon, momentum);
  }
  for (size_t i = 1; i < op.outputs(); ++i) {
    if (op.wants(i)) op.fail("output {} exists in training only", i);
  }
  const Type type = op.type(0), compute = compute_type(type);
  const auto channel = [&](size_t i) { return op.b.convert(op.in(i), compute); };
  Instr* deviation = op.b.unary(Opcode::sqrt, binary(op, Opcode::add, channel(4), epsilon));
  Instr* factor = op.b.binary(Opcode::divide, channel(1), deviation);
  Instr* offset =
      op.b.binary(Opcode::subtract, channel(2), op.b.binary(Opcode::multiply, channel(3), factor));
  const Ints extents = op.shape(0).extents();
  Instr* y = op.b.binary(Opcode::multiply, op.b.convert(op.in(0), compute),
                         broadcast_along(op, factor, extents, 1));
  y = op.b.binary(Opcode::add, y, broadcast_along(op, offset, extents, 1));
  return {op.b.convert(y, type)};
}

Outputs instance_normalization(Op& op) {
  check_image(op, 3);
  const double epsilon = op.float_attr("epsilon", 1e-5);
  op.ignore({"consumed_inputs"});
  check_channels(op, 1);
  check_channels(op, 2);
  const Type type = op.type(0), compute = compute_type(type);
  const Ints extents = op.shape(0).extents();
  Instr* x = op.b.convert(op.in(0), compute);
  Instr* y = normalise(op, x, range(2, op.rank(0)), epsilon).value;
  const auto channel = [&](size_t i) {
    return broadcast_along(op, op.b.convert(op.in(i), compute), extents, 1);
  };
  y = op.b.binary(Opcode::multiply, y, channel(1));
  y = op.b.binary(Opcode::add, y, channel(2));
  return {op.b.convert(y, type)};
}

// Scale and bias are per group in opset 18, per channel from 21 on.
Outputs group_normalization(Op& op) {
  check_image(op, 2);
  check_stash(op);
  const double epsilon = op.float_attr("epsilon", 1e-5);
  const int64_t groups = op.int_attr("num_groups", 0);
  const Ints extents = op.shape(0).extents();
  const int64_t channels = extents[1];
  if (groups < 1 || channels % groups != 0)
    op.fail("num_groups is {} for {} channels", groups, channels);
  const Type type = op.type(0), compute = compute_type(type);
  Ints grouped{extents[0], groups, channels / groups};
  grouped.insert(grouped.end(), extents.begin() + 2, extents.end());
  Instr* x = reshape(op, op.b.convert(op.in(0), compute), grouped);
  Instr* y = normalise(op, x, range(2, static_cast<int64_t>(grouped.size())), epsilon).value;
  const auto apply = [&](Opcode opcode, size_t i) {
    Instr* factor = op.b.convert(op.in(i), compute);
    if (op.opset() < 21) {
      y = op.b.binary(opcode, y, broadcast_along(op, factor, grouped, 1));
    } else {
      check_channels(op, i);
      factor = reshape(op, factor, {groups, channels / groups});
      y = op.b.binary(opcode, y, op.b.broadcast(factor, grouped, {1, 2}));
    }
  };
  apply(Opcode::multiply, 1);
  apply(Opcode::add, 2);
  return {op.b.convert(reshape(op, y, extents), type)};
}

Outputs mean_variance_normalization(Op& op) {
  op.check_float(0);
  const Ints dims = op.axes(op.ints_attr("axes", {0, 2, 3}), op.rank(0));
  const Type type = op.type(0);
  const Ints extents = op.shape(0).extents();
  Instr* x = op.b.convert(op.in(0), compute_type(type));
  x = op.b.binary(Opcode::subtract, x, broadcast_back(op, mean(op, x, dims), extents, dims));
  Instr* variance = mean(op, op.b.binary(Opcode::multiply, x, x), dims);
  Instr* below = binary(op, Opcode::add, op.b.unary(Opcode::sqrt, variance), 1e-9);
  return {
      op.b.convert(op.b.binary(Opcode::divide, x, broadcast_back(op, below, extents, dims)), type)};
}

Outputs lp_normalization(Op& op) {
  op.check_float(0);
  const Ints dims{op.axis_attr(-1, op.rank(0))};
  const int64_t p = op.int_attr("p", 2);
  if (p != 1 && p != 2) op.fail("p is {}, wanted 1 or 2", p);
  Instr* x = op.in(0);
  Instr* size = p == 1 ? op.b.unary(Opcode::abs, x) : op.b.binary(Opcode::multiply, x, x);
  size = op.b.reduce(Opcode::add, size, dims);
  if (p == 2) size = op.b.unary(Opcode::sqrt, size);
  size = select(op, compare(op, Direction::eq, size, 0), op.b.scalar(op.type(0), 1), size);
  return {op.b.binary(Opcode::divide, x, broadcast_back(op, size, op.shape(0).extents(), dims))};
}

// x^exponent for x >= 0, by square roots if possible: a general power takes many times as long.
Instr* power_of(Op& op, Instr* x, double exponent) {
  if (exponent == 1) return x;
  if (exponent != 0.5 && exponent != 0.75) return binary(op, Opcode::power, x, exponent);
  Instr* root = op.b.unary(Opcode::sqrt, x);
  return exponent == 0.5 ? root
                         : op.b.binary(Opcode::multiply, root, op.b.unary(Opcode::sqrt, root));
}

// x / (bias + alpha / size * sum of squares over the `size` nearest channels)^beta
Outputs lrn(Op& op) {
  check_image(op, 2);
  const int64_t size = op.int_attr("size", 0);
  if (size < 1 || size > op.limits().fold_elems) op.fail("size is {}", size);
  const double alpha = op.float_attr("alpha", 1e-4), beta = op.float_attr("beta", 0.75),
               bias = op.float_attr("bias", 1.0);
  Instr* x = op.in(0);
  hlo::Window window;
  window.dims.resize(static_cast<size_t>(op.rank(0)));
  window.dims[1].size = size;
  window.dims[1].pad_low = (size - 1) / 2;
  window.dims[1].pad_high = size - 1 - (size - 1) / 2;
  Instr* sum = op.b.reduce_window(Opcode::add, op.b.binary(Opcode::multiply, x, x),
                                  op.b.scalar(op.type(0), 0), window);
  Instr* below = binary(op, Opcode::multiply, sum, alpha / static_cast<double>(size));
  below = power_of(op, binary(op, Opcode::add, below, bias), beta);
  return {op.b.binary(Opcode::divide, x, below)};
}

constexpr OpEntry kOps[] = {
    {"BatchNormalization", 5, 5, batch_normalization},
    {"GroupNormalization", 3, 3, group_normalization},
    {"InstanceNormalization", 3, 3, instance_normalization},
    {"LRN", 1, 1, lrn},
    {"LayerNormalization", 2, 3, layer_normalization},
    {"LogSoftmax", 1, 1, log_softmax},
    {"LpNormalization", 1, 1, lp_normalization},
    {"MeanVarianceNormalization", 1, 1, mean_variance_normalization},
    {"RMSNormalization", 2, 2, rms_normalization},
    {"Softmax", 1, 1, softmax},
};

}  // namespace

std::span<const OpEntry> norm_ops() { return kOps; }

}  // namespace heddle::import
