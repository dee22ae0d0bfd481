// Elementwise operators with one operand; casts.
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"
#include "import/onnx_texts.h"

namespace heddle::import {
namespace {

template <Opcode opcode>
Outputs unary(Op& op) {
  return {op.b.unary(opcode, op.in(0))};
}

Outputs identity(Op& op) {
  if (!op.value(0)->is_tensor()) return {op.value(0)};
  if (const Literal* literal = op.known(0)) return {*literal};
  return {op.in(0)};
}

Outputs abs(Op& op) {
  if (tensor::is_unsigned_integer(op.type(0))) return {op.in(0)};
  return unary<Opcode::abs>(op);
}

// For unsigned integers: 0 or 1.
Outputs sign(Op& op) {
  if (!tensor::is_unsigned_integer(op.type(0))) return unary<Opcode::sign>(op);
  return {op.b.convert(compare(op, Direction::ne, op.in(0), 0), op.type(0))};
}

Outputs reciprocal(Op& op) {
  op.check_float(0);
  Instr* one = op.b.scalar(op.type(0), 1);
  return {binary(op, Opcode::divide, one, op.in(0))};
}

Outputs not_(Op& op) {
  if (op.type(0) != Type::pred) op.fail("input is {}, wanted bool", to_string(op.shape(0)));
  return {op.b.unary(Opcode::not_, op.in(0))};
}

Outputs atan(Op& op) {
  op.check_float(0);
  Instr* x = op.in(0);
  return {binary(op, Opcode::atan2, x, 1)};
}

Outputs is_nan(Op& op) {
  op.check_float(0);
  Instr* x = op.in(0);
  return {op.b.compare(Direction::ne, x, x)};
}

Outputs is_inf(Op& op) {
  op.check_float(0);
  const bool negative = op.int_attr("detect_negative", 1) != 0;
  const bool positive = op.int_attr("detect_positive", 1) != 0;
  Instr* x = op.in(0);
  if (!negative && !positive)
    return {op.b.full(Shape::array(Type::pred, op.shape(0).extents()), 0)};
  if (negative && positive) x = op.b.unary(Opcode::abs, x);
  return {compare(op, Direction::eq, x, positive ? INFINITY : -INFINITY)};
}

// Conversion to f8 saturates unless disabled: clamps in the source type first.
Instr* saturate(Op& op, Instr* x, Type to) {
  const tensor::FloatFormat& format = tensor::float_format(to);
  const tensor::FloatFormat& source = tensor::float_format(x->shape().type());
  if (format.max_finite >= source.max_finite) return x;
  x = binary(op, Opcode::maximum, x, -format.max_finite);
  return binary(op, Opcode::minimum, x, format.max_finite);
}

// f8e8m0 holds only powers of two. Rounds up, down or to the nearest by the bits of f32; values
// that are not positive become the smallest one.
Instr* to_power_of_two(Op& op, Instr* x) {
  const std::string mode = op.string_attr("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    op.fail("round_mode is {}, wanted up, down or nearest", quoted(mode));
  x = binary(op, Opcode::maximum, op.b.convert(x, Type::f32), 0x1p-127);
  if (mode == "nearest") return op.b.convert(x, Type::f8e8m0fnu);
  const Ints extents = x->shape().extents();
  Instr* bits = op.b.bitcast_convert(x, Shape::array(Type::s32, extents));
  constexpr int32_t kMantissa = 0x7fffff;
  if (mode == "up") bits = binary(op, Opcode::add, bits, kMantissa);
  bits = binary(op, Opcode::and_, bits, ~kMantissa);
  Instr* power = op.b.bitcast_convert(bits, Shape::array(Type::f32, extents));
  // Subnormal numbers are excluded, as their exponent field is 0; infinities and NaN stay.
  Instr* normal = op.b.binary(Opcode::and_, compare(op, Direction::ge, x, 0x1p-126),
                              op.b.unary(Opcode::is_finite, x));
  return op.b.convert(op.b.select(normal, power, x), Type::f8e8m0fnu);
}

Instr* cast_to(Op& op, Instr* x, Type to) {
  const Type from = x->shape().type();
  const bool saturates = op.int_attr("saturate", 1) != 0;
  if (from != to && to == Type::f8e8m0fnu && tensor::is_float(from)) return to_power_of_two(op, x);
  op.ignore({"round_mode"});
  if (from == to) return x;
  if (to == Type::pred) return compare(op, Direction::ne, x, 0);
  if (tensor::is_float(from) && tensor::is_float(to) && tensor::type_bits(to) == 8 && saturates)
    x = saturate(op, x, to);
  // HLO saturates; ONNX keeps the low bits of 4-bit and 2-bit integers.
  if (tensor::is_float(from) && tensor::is_integer(to) && tensor::type_bits(to) < 8)
    x = op.b.convert(x, Type::s32);
  return op.b.convert(x, to);
}

Outputs cast(Op& op) {
  if (!op.has_attr("to")) op.fail("attribute 'to' is missing");
  if (op.int_attr("to", 0) == kStringType) {
    op.ignore({"saturate", "round_mode"});
    return cast_to_text(op);
  }
  const Type to = element_type(op.int_attr("to", 0), op.describe());
  if (op.is_text(0)) {
    op.ignore({"saturate", "round_mode"});
    return cast_from_text(op, to);
  }
  if (op.known(0) != nullptr && op.type(0) == to) return {op.value(0)};
  return {cast_to(op, op.in(0), to)};
}

Outputs cast_like(Op& op) {
  if (op.is_text(0) || op.is_text(1)) op.ignore({"saturate", "round_mode"});
  if (op.is_text(1)) return cast_to_text(op);
  if (op.is_text(0)) return cast_from_text(op, op.type(1));
  return {cast_to(op, op.in(0), op.type(1))};
}

Outputs bit_cast(Op& op) {
  const Type to = element_type(op.int_attr("to", 0), op.describe()), from = op.type(0);
  // A bool is a byte of 0 or 1.
  if (from == Type::pred && tensor::is_integer(to) && tensor::type_bits(to) == 8)
    return {op.b.convert(op.in(0), to)};
  if (tensor::type_bits(from) != tensor::type_bits(to) || from == Type::pred || to == Type::pred)
    op.fail("{} as {}: wanted types of equal width", tensor::type_name(from),
            tensor::type_name(to));
  if (from == to) return {op.in(0)};
  return {op.b.bitcast_convert(op.in(0), Shape::array(to, op.shape(0).extents()))};
}

constexpr OpEntry kOps[] = {
    {"Abs", 1, 1, abs},
    {"Acos", 1, 1, unary<Opcode::acos>},
    {"Acosh", 1, 1, unary<Opcode::acosh>},
    {"Asin", 1, 1, unary<Opcode::asin>},
    {"Asinh", 1, 1, unary<Opcode::asinh>},
    {"Atan", 1, 1, atan},
    {"Atanh", 1, 1, unary<Opcode::atanh>},
    {"BitCast", 1, 1, bit_cast},
    {"BitwiseNot", 1, 1, unary<Opcode::not_>},
    {"Cast", 1, 1, cast, true, Text::read},
    {"CastLike", 2, 2, cast_like, true, Text::read},
    {"Ceil", 1, 1, unary<Opcode::ceil>},
    {"Cos", 1, 1, unary<Opcode::cosine>},
    {"Cosh", 1, 1, unary<Opcode::cosh>},
    {"Erf", 1, 1, unary<Opcode::erf>},
    {"Exp", 1, 1, unary<Opcode::exponential>},
    {"Floor", 1, 1, unary<Opcode::floor>},
    {"Identity", 1, 1, identity, true, Text::passes},
    {"IsInf", 1, 1, is_inf},
    {"IsNaN", 1, 1, is_nan},
    {"Log", 1, 1, unary<Opcode::log>},
    {"Neg", 1, 1, unary<Opcode::negate>},
    {"Not", 1, 1, not_},
    {"Reciprocal", 1, 1, reciprocal},
    {"Round", 1, 1, unary<Opcode::round_nearest_even>},
    {"Sign", 1, 1, sign},
    {"Sin", 1, 1, unary<Opcode::sine>},
    {"Sinh", 1, 1, unary<Opcode::sinh>},
    {"Sqrt", 1, 1, unary<Opcode::sqrt>},
    {"Tan", 1, 1, unary<Opcode::tan>},
    {"Tanh", 1, 1, unary<Opcode::tanh>},
};

}  // namespace

std::span<const OpEntry> unary_ops() { return kOps; }

}  // namespace heddle::import
