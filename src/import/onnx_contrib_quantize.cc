// Quantised operators of the domain com.microsoft: float operators between two conversions,
// products with float results, and products with weights of 2, 4 or 8 bits in blocks (MatMulNBits).
#include <cmath>
#include <deque>

#include "import/onnx_ops.h"
#include "import/onnx_quantize.h"

namespace heddle::import {

Instr* unpacked_bits(Op& op, Instr* x, int64_t bits) {
  const Ints extents = x->shape().extents();
  const int64_t each = 8 / bits;
  if (each == 1) return x;
  Ints apart = extents, merged = extents;
  apart.push_back(1);
  merged.back() *= each;
  std::vector<Instr*> parts;
  for (int64_t i = 0; i < each; ++i) {
    Instr* part = binary(op, Opcode::shift_right_logical, x, bits * i);
    part = binary(op, Opcode::and_, part, (1 << bits) - 1);
    parts.push_back(op.b.reshape(part, apart));
  }
  return op.b.reshape(op.b.concatenate(parts, static_cast<int64_t>(extents.size())), merged);
}

Instr* unpacked_numbers(Op& op, Instr* x, int64_t bits, int64_t extent) {
  x = unpacked_bits(op, x, bits);
  op.check_builder();
  Ints limits = x->shape().extents();
  limits.back() = extent;
  if (limits != x->shape().extents()) x = op.b.slice(x, Ints(limits.size(), 0), limits, {});
  return op.b.convert(x, Type::f32);
}

namespace {

// ---- operators between conversions ----

// An 8-bit value with the scale of input `scale` and the zero point in the next input (may be
// missing).
Instr* quantised(Op& op, Instr* x, size_t scale, Type to) {
  const Ints extents = x->shape().extents();
  Instr* y_scale = spread(op, scale_input(op, scale, Type::f32), extents, 0, 0);
  Instr* zero = op.has(scale + 1) ? spread(op, op.in(scale + 1), extents, 0, 0) : nullptr;
  return to_integer(op, op.b.binary(Opcode::divide, x, y_scale), zero, to);
}

// Applies the operator `name` of ONNX to these values.
Instr* applied(Op& op, std::string_view name, int64_t opset, const std::vector<Instr*>& values) {
  std::deque<Value> inputs(values.size());
  std::vector<Value*> pointers;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs[i].instr = values[i];
    pointers.push_back(&inputs[i]);
  }
  proto::Node node;
  node.op_type = name;
  const OpEntry* entry = find_op(node);
  HEDDLE_CHECK(entry, "no operator {}", name);
  Op inner(op, opset, pointers);
  Outputs outputs = entry->handler(inner);
  inner.add_reads_to(op);
  return outputs.at(0).instr;
}

// X, its scale and zero point, then the scale and zero point of Y.
Outputs between(Op& op, std::string_view name, int64_t opset = 13) {
  if (op.int_attr("channels_last", 0) != 0) op.fail("channels_last is 1, wanted 0");
  Instr* y = applied(op, name, opset, {dequantised(op, 0, 0)});
  return {quantised(op, y, 3, op.type(0))};
}

Outputs qlinear_average_pool(Op& op) { return between(op, "AveragePool"); }
Outputs qlinear_global_average_pool(Op& op) { return between(op, "GlobalAveragePool"); }
Outputs qlinear_leaky_relu(Op& op) { return between(op, "LeakyRelu"); }
Outputs qlinear_reduce_mean(Op& op) { return between(op, "ReduceMean"); }
Outputs qlinear_sigmoid(Op& op) { return between(op, "Sigmoid"); }
Outputs qlinear_softmax(Op& op) { return between(op, "Softmax", op.int_attr("opset", 13)); }

Outputs pairwise(Op& op, Opcode opcode) {
  Instr* y = binary(op, opcode, dequantised(op, 0, 0), dequantised(op, 3, 0));
  return {quantised(op, y, 6, op.type(0))};
}

Outputs qlinear_add(Op& op) { return pairwise(op, Opcode::add); }
Outputs qlinear_mul(Op& op) { return pairwise(op, Opcode::multiply); }

// The result's scale and zero point, then three inputs per part.
Outputs qlinear_concat(Op& op) {
  if (op.inputs() % 3 != 2) op.fail("{} inputs, wanted 2 and three a part", op.inputs());
  std::vector<Instr*> parts;
  for (size_t i = 2; i + 2 < op.inputs(); i += 3) parts.push_back(dequantised(op, i, 0));
  return {quantised(op, applied(op, "Concat", 13, parts), 0, op.type(2))};
}

// The condition, three inputs for either value, and the result's two.
Outputs qlinear_where(Op& op) {
  if (op.type(0) != Type::pred) op.fail("the condition is {}", to_string(op.shape(0)));
  Instr* y = select(op, op.in(0), dequantised(op, 1, 0), dequantised(op, 4, 0));
  return {quantised(op, y, 7, op.type(1))};
}

// ---- products ----

Instr* transposed(Op& op, Instr* x) {
  if (x->shape().rank() != 2) op.fail("an operand is {}, wanted a matrix", to_string(x->shape()));
  return op.b.transpose(x, {1, 0});
}

// alpha A' B' + C; C in s32 has the scale of the product. Without a scale of Y the result is float.
Outputs qgemm(Op& op) {
  const bool turns_a = op.int_attr("transA", 0) != 0, turns_b = op.int_attr("transB", 0) != 0;
  const double alpha = op.float_attr("alpha", 1);
  Instr* a = dequantised(op, 0, 0);
  Instr* b = dequantised(op, 3, turns_b ? 0 : 1);
  Instr* y = matrix_product(op, turns_a ? transposed(op, a) : a, turns_b ? transposed(op, b) : b);
  op.check_builder();
  const Ints extents = y->shape().extents();
  if (op.has(6)) {
    if (op.type(6) != Type::s32) op.fail("C is {}, wanted int32", to_string(op.shape(6)));
    Instr* scale =
        op.b.binary(Opcode::multiply, spread(op, scale_input(op, 1, Type::f32), extents, 1, 0),
                    spread(op, scale_input(op, 4, Type::f32), extents, 1, 0));
    Instr* c = op.b.convert(broadcast_to(op, op.in(6), extents), Type::f32);
    y = op.b.binary(Opcode::add, y, op.b.binary(Opcode::multiply, c, scale));
  }
  if (alpha != 1) y = binary(op, Opcode::multiply, y, alpha);
  if (!op.has(7)) return {y};
  return {quantised(op, y, 7, op.has(8) ? op.type(8) : op.type(0))};
}

Instr* with_bias(Op& op, Instr* y, size_t bias) {
  op.check_builder();
  if (!op.has(bias)) return y;
  return op.b.binary(
      Opcode::add, y,
      broadcast_to(op, op.b.convert(op.in(bias), y->shape().type()), y->shape().extents()));
}

Instr* scaled(Op& op, Instr* x, size_t scale, int64_t along) {
  Instr* factor = spread(op, scale_input(op, scale, Type::f32), x->shape().extents(), along, 0);
  return op.b.binary(Opcode::multiply, op.b.convert(x, Type::f32), factor);
}

Outputs matmul_integer_to_float(Op& op) {
  Instr* a = scaled(op, centred(op, 0, 4, row_dim(op, 0)), 2, row_dim(op, 0));
  Instr* b = scaled(op, centred(op, 1, 5, column_dim(op, 1)), 3, column_dim(op, 1));
  return {with_bias(op, matrix_product(op, a, b), 6)};
}

// A is quantised to u8 as a whole, by its range at run time.
Outputs dynamic_quantize_matmul(Op& op) {
  op.check_float(0);
  std::deque<Value> x(1);
  x[0].instr = op.in(0);
  Op inner(op, 11, {&x[0]});
  proto::Node node;
  node.op_type = "DynamicQuantizeLinear";
  const Outputs parts = find_op(node)->handler(inner);
  const Ints extents = op.shape(0).extents();
  Instr* a = op.b.binary(Opcode::subtract, op.b.convert(parts[0].instr, Type::s32),
                         op.b.convert(splat(op, parts[2].instr, extents), Type::s32));
  a = op.b.binary(Opcode::multiply, op.b.convert(a, Type::f32), splat(op, parts[1].instr, extents));
  Instr* b = scaled(op, centred(op, 1, 3, column_dim(op, 1)), 2, column_dim(op, 1));
  return {with_bias(op, matrix_product(op, a, b), 4)};
}

// ---- weights of few bits ----

struct Blocks {
  int64_t k, n, bits, size, count;  // count: blocks per column
};

// [n, count] zero points: packed like the weights, or as separate numbers.
Instr* zero_points(Op& op, const Blocks& blocks, Type compute) {
  if (!op.has(3)) return op.b.scalar(compute, std::ldexp(1, static_cast<int>(blocks.bits) - 1));
  Instr* x = op.in(3);
  if (x->shape().type() != Type::u8) {
    if (!tensor::is_float(x->shape().type()) || x->shape().elems() != blocks.n * blocks.count)
      op.fail("zero_points is {}", to_string(x->shape()));
    return op.b.convert(reshape(op, x, {blocks.n, blocks.count}), compute);
  }
  const int64_t bytes = (blocks.count * blocks.bits + 7) / 8;
  if (x->shape().elems() != blocks.n * bytes)
    op.fail("zero_points is {}, wanted {} bytes a column", to_string(x->shape()), bytes);
  x = unpacked_bits(op, reshape(op, x, {blocks.n, bytes}), blocks.bits);
  if (x->shape().dim(1) != blocks.count) x = op.b.slice(x, {0, 0}, {blocks.n, blocks.count}, {});
  return op.b.convert(x, compute);
}

// The elements of B in the order of k: u8 [n, blocks, size].
Instr* in_order(Op& op, const Blocks& blocks) {
  const int64_t bytes = blocks.size * blocks.bits / 8;
  Instr* x =
      unpacked_bits(op, reshape(op, op.in(1), {blocks.n, blocks.count * bytes}), blocks.bits);
  return op.b.reshape(x, {blocks.n, blocks.count, blocks.size});
}

// The weights [n, blocks, size].
Instr* weights_in_blocks(Op& op, const Blocks& blocks) {
  const Ints extents{blocks.n, blocks.count, blocks.size};
  const auto of_blocks = [&](Instr* x) {
    return x->shape().rank() == 0 ? splat(op, x, extents) : op.b.broadcast(x, extents, {0, 1});
  };
  Instr* w = op.b.binary(Opcode::subtract, op.b.convert(in_order(op, blocks), Type::f32),
                         of_blocks(zero_points(op, blocks, Type::f32)));
  Instr* scale = reshape(op, scale_input(op, 2, Type::f32, true), {blocks.n, blocks.count});
  return op.b.binary(Opcode::multiply, w, of_blocks(scale));
}

// A [..., k] times the transpose of the weights [n, k].
Outputs matmul_nbits(Op& op) {
  op.check_float(0);
  op.ignore({"accuracy_level", "weight_prepacked"});  // permitted accuracy; layout hints
  Blocks blocks{op.int_attr("K", 0), op.int_attr("N", 0), op.int_attr("bits", 4),
                op.int_attr("block_size", 0), 0};
  const int64_t most = op.limits().value_elems;
  if (blocks.k < 1 || blocks.n < 1 || blocks.k > most || blocks.n > most)
    op.fail("K is {}, N is {}", blocks.k, blocks.n);
  if (blocks.bits != 2 && blocks.bits != 4 && blocks.bits != 8)
    op.fail("bits is {}, wanted 2, 4 or 8", blocks.bits);
  if (blocks.size < 16 || blocks.size > most || (blocks.size & (blocks.size - 1)) != 0)
    op.fail("block_size is {}, wanted a power of two from 16 on", blocks.size);
  if (op.has(4)) op.fail("g_idx is given; only blocks in order are supported");
  blocks.count = (blocks.k + blocks.size - 1) / blocks.size;
  const int64_t bytes = blocks.size * blocks.bits / 8;
  op.check_extents({blocks.n, blocks.count, blocks.size});
  if (op.rank(0) < 1 || op.shape(0).dim(op.rank(0) - 1) != blocks.k)
    op.fail("A is {}, K is {}", to_string(op.shape(0)), blocks.k);
  if (op.type(1) != Type::u8 || op.shape(1).elems() != blocks.n * blocks.count * bytes)
    op.fail("B is {}, wanted uint8 [{},{},{}]", to_string(op.shape(1)), blocks.n, blocks.count,
            bytes);
  if (op.shape(2).elems() != blocks.n * blocks.count)
    op.fail("scales is {}, wanted {} by {}", to_string(op.shape(2)), blocks.n, blocks.count);
  const Ints extents{blocks.n, blocks.k};
  Instr* w = op.b.reshape(weights_in_blocks(op, blocks), {blocks.n, blocks.count * blocks.size});
  if (w->shape().extents() != extents) w = op.b.slice(w, {0, 0}, extents, {});
  Instr* a = op.b.convert(op.in(0), Type::f32);
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {op.rank(0) - 1};
  attrs.rhs_contracting_dims = {1};
  return {op.b.convert(with_bias(op, op.b.dot(a, w, attrs), 5), op.type(0))};
}

// Rows of a table stored in blocks along its last dimension: data, indices, scales, zero points.
Outputs gather_block_quantized(Op& op) {
  const int64_t bits = op.int_attr("bits", 4), size = op.int_attr("block_size", 128);
  const int64_t rank = op.rank(0);
  const bool packed = op.type(0) == Type::u8;
  const int64_t gathered = op.axis(op.int_attr("gather_axis", 0), rank);
  const int64_t along = op.axis(op.int_attr("quantize_axis", 1), rank);
  if (bits != 4 && bits != 8) op.fail("bits is {}, wanted 4 or 8", bits);
  if (rank < 2 || gathered == along || along != rank - 1)
    op.fail("gather_axis is {}, quantize_axis {} of {}: only the last is supported for the latter",
            gathered, along, to_string(op.shape(0)));
  if (!packed && op.type(0) != Type::u4 && op.type(0) != Type::s4)
    op.fail("data is {}, wanted uint8, uint4 or int4", to_string(op.shape(0)));
  if (size < 16 || (size & (size - 1)) != 0) op.fail("block_size is {}", size);
  const int64_t extent = op.shape(0).dim(along) * (packed ? 8 / bits : 1);
  const int64_t blocks = (extent + size - 1) / size;
  Ints scales = op.shape(0).extents();
  scales.back() = blocks;
  if (op.shape(2).extents() != scales)
    op.fail("scales is {}, wanted [{}]", to_string(op.shape(2)), fmt::join(scales, ","));
  if (!tensor::is_integer(op.type(1))) op.fail("indices is {}", to_string(op.shape(1)));
  const int64_t rows = op.shape(0).dim(gathered);
  op.demand(1, {{-rows, rows - 1}});
  Instr* at = from_the_beginning(op, op.b.convert(op.in(1), Type::s64), rows);
  const auto numbers = [&](size_t input, int64_t count) {
    Instr* x = op.b.take(op.in(input), at, gathered);
    return packed ? unpacked_numbers(op, x, bits, count) : op.b.convert(x, Type::f32);
  };
  Instr* y = numbers(0, extent);
  op.check_builder();
  const Ints extents = y->shape().extents();
  const auto last = static_cast<int64_t>(extents.size()) - 1;
  Ints apart = extents;
  apart.back() = blocks;
  apart.push_back(size);
  const auto of_blocks = [&](Instr* x) {
    Ints all = extents;
    all.back() = blocks * size;
    x = reshape(op, op.b.broadcast(x, apart, range(0, last + 1)), all);
    return all == extents ? x : op.b.slice(x, Ints(extents.size(), 0), extents, {});
  };
  if (op.has(3)) {
    Ints wanted = scales;
    if (packed) wanted.back() = (blocks * bits + 7) / 8;
    if (op.shape(3).extents() != wanted || op.type(3) != op.type(0))
      op.fail("zero_points is {}, wanted [{}]", to_string(op.shape(3)), fmt::join(wanted, ","));
    y = op.b.binary(Opcode::subtract, y, of_blocks(numbers(3, blocks)));
  } else if (packed) {
    y = binary(op, Opcode::subtract, y, 1 << (bits - 1));
  }
  Instr* scale = op.b.take(scale_input(op, 2, Type::f32, true), at, gathered);
  return {op.b.convert(op.b.binary(Opcode::multiply, y, of_blocks(scale)), op.type(2))};
}

constexpr OpEntry kOps[] = {
    {"com.microsoft.DynamicQuantizeMatMul", 3, 5, dynamic_quantize_matmul},
    {"com.microsoft.GatherBlockQuantized", 3, 4, gather_block_quantized},
    {"com.microsoft.MatMulIntegerToFloat", 4, 7, matmul_integer_to_float},
    {"com.microsoft.MatMulNBits", 3, 6, matmul_nbits},
    {"com.microsoft.QGemm", 6, 9, qgemm},
    {"com.microsoft.QLinearAdd", 7, 8, qlinear_add},
    {"com.microsoft.QLinearAveragePool", 4, 5, qlinear_average_pool},
    {"com.microsoft.QLinearConcat", 5, -1, qlinear_concat},
    {"com.microsoft.QLinearGlobalAveragePool", 5, 5, qlinear_global_average_pool},
    {"com.microsoft.QLinearLeakyRelu", 4, 5, qlinear_leaky_relu},
    {"com.microsoft.QLinearMul", 7, 8, qlinear_mul},
    {"com.microsoft.QLinearReduceMean", 4, 5, qlinear_reduce_mean},
    {"com.microsoft.QLinearSigmoid", 4, 5, qlinear_sigmoid},
    {"com.microsoft.QLinearSoftmax", 5, 5, qlinear_softmax},
    {"com.microsoft.QLinearWhere", 9, 9, qlinear_where},
};

}  // namespace

std::span<const OpEntry> contrib_quantize_ops() { return kOps; }

}  // namespace heddle::import
