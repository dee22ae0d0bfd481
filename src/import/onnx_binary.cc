// Elementwise operators with several operands and numpy broadcasting.
#include <algorithm>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// Checks that both inputs have one element type.
void check_same_type(Op& op, size_t i, size_t j) {
  if (op.type(i) != op.type(j))
    op.fail("inputs {} and {} are {} and {}; they must have one element type", i, j,
            to_string(op.shape(i)), to_string(op.shape(j)));
}

// Before opset 7 the second input broadcasts one way, if requested: its dimensions match those of
// the first from `axis` on, or its last ones.
Instr* second(Op& op) {
  if (op.opset() >= 7) return op.in(1);
  const bool broadcasts = op.int_attr("broadcast", 0) != 0;
  const int64_t after = op.rank(0) - op.rank(1);
  if (!op.has_attr("axis")) return op.in(1);
  const int64_t axis = op.axis(op.int_attr("axis", 0), std::max<int64_t>(op.rank(0), 1));
  if (!broadcasts || axis > after)
    op.fail("axis {} for inputs {} and {}", axis, to_string(op.shape(0)), to_string(op.shape(1)));
  Ints extents = op.shape(1).extents();
  extents.resize(static_cast<size_t>(op.rank(0) - axis), 1);
  return reshape(op, op.in(1), extents);
}

template <Opcode opcode>
Outputs arithmetic(Op& op) {
  op.ignore({"consumed_inputs"});
  check_same_type(op, 0, 1);
  return {binary(op, opcode, op.in(0), second(op))};
}

// The single value of all elements of a known mask, if any.
std::optional<bool> known_bool(const Op& op, size_t i) {
  const Literal* literal = op.known(i);
  if (literal == nullptr || literal->type() != Type::pred) return std::nullopt;
  if (literal->elems() != 1 && !is_uniform(*literal)) return std::nullopt;
  return literal->get_s64(0) != 0;
}

template <Opcode opcode>
Outputs logical(Op& op) {
  check_same_type(op, 0, 1);
  if (op.type(0) != Type::pred) op.fail("input 0 is {}, wanted bool", to_string(op.shape(0)));
  // Exported masks often have a redundant "and true".
  if (op.opset() >= 7 && (opcode == Opcode::and_ || opcode == Opcode::or_)) {
    const Ints extents = common_extents(op, op.shape(0).extents(), op.shape(1).extents());
    for (size_t i : {0, 1}) {
      if (known_bool(op, i) == (opcode == Opcode::and_))
        return {broadcast_to(op, op.in(1 - i), extents)};
    }
  }
  return {binary(op, opcode, op.in(0), second(op))};
}

template <Direction direction>
Outputs comparison(Op& op) {
  check_same_type(op, 0, 1);
  return {compare(op, direction, op.in(0), second(op))};
}

template <Opcode opcode>
Outputs variadic(Op& op) {
  Instr* result = op.in(0);
  for (size_t i = 1; i < op.inputs(); ++i) {
    check_same_type(op, 0, i);
    result = binary(op, opcode, result, op.in(i));
  }
  return {result};
}

Outputs mean_of_inputs(Op& op) {
  op.check_float(0);
  const auto count = static_cast<double>(op.inputs());
  Instr* sum = variadic<Opcode::add>(op).front().instr;
  return {count == 1 ? sum : binary(op, Opcode::divide, sum, count)};
}

// The result has the base's type. Squares and cubes, the usual cases in exports, become products.
Outputs pow(Op& op) {
  Instr *x = op.in(0), *y = second(op);
  const Type type = op.type(0);
  if (const Literal* exponent = op.known(1);
      exponent && exponent->elems() == 1 && op.rank(1) <= op.rank(0)) {
    const double power = exponent->get_f64(0);
    if (power == 1) return {x};
    if (power == 2 || power == 3) {
      Instr* square = op.b.binary(Opcode::multiply, x, x);
      return {power == 2 ? square : op.b.binary(Opcode::multiply, square, x)};
    }
  }
  if (tensor::is_float(type)) return {binary(op, Opcode::power, x, op.b.convert(y, type))};
  if (tensor::is_integer(op.type(1))) return {binary(op, Opcode::power, x, op.b.convert(y, type))};
  Instr* result = binary(op, Opcode::power, op.b.convert(x, Type::f64), op.b.convert(y, Type::f64));
  return {op.b.convert(result, type)};
}

// fmod: the dividend's sign, as in HLO; else the divisor's, as in Python.
Outputs mod(Op& op) {
  check_same_type(op, 0, 1);
  const bool fmod = op.int_attr("fmod", 0) != 0;
  const Type type = op.type(0);
  Instr* y = op.in(1);
  Instr* rest = binary(op, Opcode::remainder, op.in(0), y);
  if (fmod || tensor::is_unsigned_integer(type)) return {rest};
  y = broadcast_to(op, y, rest->shape().extents());
  Instr* negative = compare(op, Direction::lt, y, 0);
  Instr* signs_differ = op.b.compare(Direction::ne, compare(op, Direction::lt, rest, 0), negative);
  Instr* fix = op.b.binary(Opcode::and_, signs_differ, compare(op, Direction::ne, rest, 0));
  Instr* result = op.b.select(fix, op.b.binary(Opcode::add, rest, y), rest);
  if (!tensor::is_float(type)) return {result};
  Instr* zero = select(op, negative, op.b.scalar(type, -0.0), op.b.scalar(type, 0));
  return {op.b.select(compare(op, Direction::eq, rest, 0), zero, result)};
}

Outputs bit_shift(Op& op) {
  check_same_type(op, 0, 1);
  const std::string direction = op.string_attr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    op.fail("direction is {}, wanted LEFT or RIGHT", quoted(direction));
  const Opcode right = tensor::is_signed_integer(op.type(0)) ? Opcode::shift_right_arithmetic
                                                             : Opcode::shift_right_logical;
  const Opcode opcode = direction == "LEFT" ? Opcode::shift_left : right;
  return {binary(op, opcode, op.in(0), op.in(1))};
}

Outputs where(Op& op) {
  if (op.type(0) != Type::pred) op.fail("condition is {}, wanted bool", to_string(op.shape(0)));
  check_same_type(op, 1, 2);
  if (const Literal* all = op.known(0); all != nullptr && all->elems() > 0 && is_uniform(*all)) {
    const Ints values = common_extents(op, op.shape(1).extents(), op.shape(2).extents());
    Instr* chosen = all->get_s64(0) != 0 ? op.in(1) : op.in(2);
    return {broadcast_to(op, chosen, common_extents(op, values, op.shape(0).extents()))};
  }
  return {select(op, op.in(0), op.in(1), op.in(2))};
}

constexpr OpEntry kOps[] = {
    {"Add", 2, 2, arithmetic<Opcode::add>},
    {"And", 2, 2, logical<Opcode::and_>},
    {"BitShift", 2, 2, bit_shift},
    {"BitwiseAnd", 2, 2, arithmetic<Opcode::and_>},
    {"BitwiseOr", 2, 2, arithmetic<Opcode::or_>},
    {"BitwiseXor", 2, 2, arithmetic<Opcode::xor_>},
    {"Div", 2, 2, arithmetic<Opcode::divide>},
    {"Equal", 2, 2, comparison<Direction::eq>, true, Text::passes},
    {"Greater", 2, 2, comparison<Direction::gt>},
    {"GreaterOrEqual", 2, 2, comparison<Direction::ge>},
    {"Less", 2, 2, comparison<Direction::lt>},
    {"LessOrEqual", 2, 2, comparison<Direction::le>},
    {"Max", 1, -1, variadic<Opcode::maximum>},
    {"Mean", 1, -1, mean_of_inputs},
    {"Min", 1, -1, variadic<Opcode::minimum>},
    {"Mod", 2, 2, mod},
    {"Mul", 2, 2, arithmetic<Opcode::multiply>},
    {"Or", 2, 2, logical<Opcode::or_>},
    {"Pow", 2, 2, pow},
    {"Sub", 2, 2, arithmetic<Opcode::subtract>},
    {"Sum", 1, -1, variadic<Opcode::add>},
    {"Where", 3, 3, where, true, Text::passes},
    {"Xor", 2, 2, logical<Opcode::xor_>},
};

}  // namespace

std::span<const OpEntry> binary_ops() { return kOps; }

}  // namespace heddle::import
