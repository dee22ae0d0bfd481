// Quantisation: to and from integers and small floats, and products of quantised values, exact in
// s32. A scale is one number, one per slice of an axis, or one per block along it.
#include "import/onnx_quantize.h"

#include <algorithm>
#include <cmath>

#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

struct Range {
  double low = 0, high = 0;
};

Range integer_range(Op& op, Type type) {
  const int bits = tensor::type_bits(type);
  if (!tensor::is_integer(type) || bits > 16)
    op.fail("{} is not a type to quantise to", tensor::type_name(type));
  if (tensor::is_unsigned_integer(type)) return {0, std::ldexp(1, bits) - 1};
  return {-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1};
}

}  // namespace

Instr* scale_input(Op& op, size_t input, Type type, bool any_sign) {
  const Literal* value = op.known(input);
  for (int64_t i = 0; value != nullptr && i < value->elems(); ++i) {
    const double scale = value->get_f64(i);
    if (std::isfinite(scale) && (any_sign || scale > 0)) continue;
    op.fail("input {}, a scale: element {} is {}, wanted a {} number", input, i, scale,
            any_sign ? "finite" : "positive");
  }
  return op.b.convert(op.in(input), type);
}

Instr* spread(Op& op, Instr* x, const Ints& extents, int64_t axis, int64_t block) {
  const Ints from = x->shape().extents();
  if (product(from) == 1 && from.size() <= 1) return splat(op, reshape(op, x, {}), extents);
  const auto rank = static_cast<int64_t>(extents.size());
  axis = op.axis(axis, rank);
  if (from.size() == 1) return broadcast_along(op, x, extents, axis);
  Ints wanted = extents;
  const auto a = static_cast<size_t>(axis);
  if (block > 0) wanted[a] = (extents[a] + block - 1) / block;
  if (from != wanted || block < 1)
    op.fail("scale or zero point is {} and block_size {}: wanted [{}]", to_string(x->shape()),
            block, fmt::join(wanted, ","));
  Ints apart = from, merged = from, dims = range(0, rank);
  apart.insert(apart.begin() + axis + 1, block);
  for (int64_t& dim : dims) dim += dim > axis ? 1 : 0;
  merged[a] *= block;
  op.check_extents(apart);
  x = reshape(op, op.b.broadcast(x, apart, dims), merged);
  if (merged == extents) return x;
  return op.b.slice(x, Ints(extents.size(), 0), extents, {});
}

// Both are integers, so the sum is exact within the range; the conversion clamps.
Instr* to_integer(Op& op, Instr* x, Instr* zero_point, Type to) {
  const Range range = integer_range(op, to);
  x = op.b.unary(Opcode::round_nearest_even, x);
  if (x->shape().type() == Type::f16) x = op.b.convert(x, Type::f32);
  if (zero_point != nullptr)
    x = op.b.binary(Opcode::add, x, op.b.convert(zero_point, x->shape().type()));
  if (tensor::type_bits(to) >= 8) return op.b.convert(x, to);
  x = binary(op, Opcode::minimum, binary(op, Opcode::maximum, x, range.low), range.high);
  return op.b.convert(op.b.convert(x, Type::s32), to);
}

namespace {

Instr* to_small_float(Op& op, Instr* x, Type to) {
  const tensor::FloatFormat& format = tensor::float_format(to);
  const bool saturates = op.int_attr("saturate", 1) != 0;
  if (x->shape().type() != Type::f64) x = op.b.convert(x, Type::f32);
  if (saturates && tensor::type_bits(to) == 8) {
    x = binary(op, Opcode::maximum, x, -format.max_finite);
    x = binary(op, Opcode::minimum, x, format.max_finite);
  }
  return op.b.convert(x, to);
}

Type optional_type(Op& op, const char* name, Type otherwise) {
  const int64_t given = op.int_attr(name, 0);
  return given == 0 ? otherwise : element_type(given, op.describe());
}

Outputs quantize_linear(Op& op) {
  const int64_t axis = op.int_attr("axis", 1), block = op.int_attr("block_size", 0);
  const Type to = op.has(2) ? op.type(2) : optional_type(op, "output_dtype", Type::u8);
  if (optional_type(op, "output_dtype", to) != to)
    op.fail("output_dtype is not the type of the zero point");
  const bool to_float = tensor::is_float(to);
  if (to_float ? tensor::type_bits(to) > 8 : !tensor::is_integer(to))
    op.fail("{} is not a type to quantise to", tensor::type_name(to));
  const Type compute = optional_type(op, "precision", op.type(1));
  if (!tensor::is_float(compute)) op.fail("the scale is {}", to_string(op.shape(1)));
  const Ints extents = op.shape(0).extents();
  Instr* scale = spread(op, scale_input(op, 1, compute), extents, axis, block);
  Instr* x = op.b.binary(Opcode::divide, op.b.convert(op.in(0), compute), scale);
  Instr* zero = op.has(2) && !to_float ? spread(op, op.in(2), extents, axis, block) : nullptr;
  if (to_float) return {to_small_float(op, x, to)};  // small floats have zero point 0
  op.ignore({"saturate"});
  return {to_integer(op, x, zero, to)};
}

Outputs dequantize_linear(Op& op) {
  const int64_t axis = op.int_attr("axis", 1), block = op.int_attr("block_size", 0);
  const Type to = optional_type(op, "output_dtype", op.type(1)), from = op.type(0);
  const Ints extents = op.shape(0).extents();
  Instr* x = op.in(0);
  if (op.has(2) && tensor::is_integer(from)) {
    if (op.type(2) != from)
      op.fail("x is {}, its zero point {}", to_string(op.shape(0)), to_string(op.shape(2)));
    Instr* zero = spread(op, op.b.convert(op.in(2), Type::s32), extents, axis, block);
    x = op.b.binary(Opcode::subtract, op.b.convert(x, Type::s32), zero);
  }
  const Type compute = op.type(1) == Type::f64 ? Type::f64 : Type::f32;
  Instr* scale = spread(op, scale_input(op, 1, compute, block > 0), extents, axis, block);
  x = op.b.binary(Opcode::multiply, op.b.convert(x, compute), scale);
  return {op.b.convert(x, to)};
}

// Maps the range [min(0, min x), max(0, max x)] to 0 ... 255.
Outputs dynamic_quantize_linear(Op& op) {
  op.check_float(0);
  const Ints extents = op.shape(0).extents();
  const Ints dims = range(0, op.rank(0));
  Instr* x = op.in(0);
  const auto end = [&](Opcode opcode) {
    Instr* reduced = dims.empty() ? x : op.b.reduce(opcode, x, dims);
    return binary(op, opcode, reduced, 0);
  };
  Instr *low = end(Opcode::minimum), *high = end(Opcode::maximum);
  Instr* scale = binary(op, Opcode::divide, op.b.binary(Opcode::subtract, high, low), 255);
  Instr* zero = op.b.binary(Opcode::divide, op.b.unary(Opcode::negate, low), scale);
  zero = to_integer(op, zero, nullptr, Type::u8);
  Instr* y = op.b.binary(Opcode::divide, x, splat(op, scale, extents));
  return {to_integer(op, y, splat(op, zero, extents), Type::u8), scale, zero};
}

}  // namespace

Instr* centred(Op& op, size_t input, size_t zero_point, int64_t along) {
  if (!tensor::is_integer(op.type(input)) || tensor::type_bits(op.type(input)) > 8)
    op.fail("input {} is {}, wanted int8 or uint8", input, to_string(op.shape(input)));
  Instr* x = op.b.convert(op.in(input), Type::s32);
  if (!op.has(zero_point)) return x;
  Instr* zero = op.b.convert(op.in(zero_point), Type::s32);
  if (zero->shape().rank() > 1) return binary(op, Opcode::subtract, x, zero);
  return op.b.binary(Opcode::subtract, x, spread(op, zero, x->shape().extents(), along, 0));
}

int64_t row_dim(const Op& op, size_t input) { return std::max<int64_t>(op.rank(input) - 2, 0); }
int64_t column_dim(const Op& op, size_t input) { return std::max<int64_t>(op.rank(input) - 1, 0); }

Instr* dequantised(Op& op, size_t x, int64_t along) {
  Instr* value = op.b.convert(centred(op, x, x + 2, along), Type::f32);
  const Ints extents = value->shape().extents();
  Instr* scale = spread(op, scale_input(op, x + 1, Type::f32), extents, along, 0);
  return op.b.binary(Opcode::multiply, value, scale);
}

namespace {

Outputs matmul_integer(Op& op) {
  return {
      matrix_product(op, centred(op, 0, 2, row_dim(op, 0)), centred(op, 1, 3, column_dim(op, 1)))};
}

// A scale of a product: one per row (A) or column (B, Y), or a single one.
Instr* product_scale(Op& op, size_t input, const Ints& extents, int64_t along) {
  Instr* scale = scale_input(op, input, Type::f32);
  if (scale->shape().rank() <= 1) return spread(op, scale, extents, along, 0);
  return broadcast_to(op, scale, extents);
}

Outputs qlinear_matmul(Op& op) {
  Instr* a = centred(op, 0, 2, row_dim(op, 0));
  Instr* b = centred(op, 3, 5, column_dim(op, 3));
  Instr* y = matrix_product(op, a, b);
  op.check_builder();
  const Ints extents = y->shape().extents();
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t rows = std::max<int64_t>(rank - 2, 0), columns = std::max<int64_t>(rank - 1, 0);
  Instr* scale = op.b.binary(Opcode::multiply, product_scale(op, 1, extents, rows),
                             product_scale(op, 4, extents, columns));
  scale = op.b.binary(Opcode::divide, scale, product_scale(op, 6, extents, columns));
  y = op.b.binary(Opcode::multiply, op.b.convert(y, Type::f32), scale);
  Instr* zero = op.in(7);
  zero = zero->shape().rank() <= 1 ? spread(op, zero, extents, columns, 0)
                                   : broadcast_to(op, zero, extents);
  return {to_integer(op, y, zero, op.type(7))};
}

Outputs conv_integer(Op& op) { return {convolve(op, centred(op, 0, 2, 1), centred(op, 1, 3, 0))}; }

Outputs qlinear_conv(Op& op) {
  Instr* y = convolve(op, centred(op, 0, 2, 1), centred(op, 3, 5, 0));
  const Ints extents = y->shape().extents();
  if (op.has(8)) {
    if (op.type(8) != Type::s32) op.fail("B is {}, wanted int32", to_string(op.shape(8)));
    y = op.b.binary(Opcode::add, y, broadcast_along(op, op.in(8), extents, 1));
  }
  Instr* scale = op.b.binary(Opcode::multiply, product_scale(op, 1, extents, 1),
                             product_scale(op, 4, extents, 1));
  scale = op.b.binary(Opcode::divide, scale, product_scale(op, 6, extents, 1));
  y = op.b.binary(Opcode::multiply, op.b.convert(y, Type::f32), scale);
  return {to_integer(op, y, spread(op, op.in(7), extents, 1, 0), op.type(7))};
}

constexpr OpEntry kOps[] = {
    {"ConvInteger", 2, 4, conv_integer},
    {"DequantizeLinear", 2, 3, dequantize_linear, /*folds=*/false},
    {"DynamicQuantizeLinear", 1, 1, dynamic_quantize_linear},
    {"MatMulInteger", 2, 4, matmul_integer},
    {"QLinearConv", 8, 9, qlinear_conv},
    {"QLinearMatMul", 8, 8, qlinear_matmul},
    {"QuantizeLinear", 2, 3, quantize_linear},
    {"com.microsoft.DequantizeLinear", 2, 3, dequantize_linear, /*folds=*/false},
    {"com.microsoft.QuantizeLinear", 2, 3, quantize_linear},
};

}  // namespace

std::span<const OpEntry> quantize_ops() { return kOps; }

}  // namespace heddle::import
