// StableHLO: elementwise operations, comparisons, conversions.
#include <algorithm>
#include <array>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

using hlo::CompareType;
using hlo::Direction;
using tensor::Type;

void complex(ShloOp& op) { op.give(op.b.make(Opcode::complex, {op.operand(0), op.operand(1)})); }

// The parts of a real number are itself and 0.
template <bool kReal>
void part(ShloOp& op) {
  Instr* x = op.operand(0);
  if (tensor::is_complex(x->shape().type()))
    op.give(op.b.unary(kReal ? Opcode::real : Opcode::imag, x));
  else
    op.give(kReal ? x : op.b.full(x->shape(), 0));
}

// Broadcasts a scalar to the shape of `like`.
Instr* spread(ShloOp& op, Instr* x, const Instr* like) {
  if (!x->shape().is_scalar() || like->shape().is_scalar()) return x;
  return op.b.broadcast(x, like->shape().extents(), {});
}

void clamp(ShloOp& op) {
  Instr* x = op.operand(1);
  op.give(op.b.clamp(spread(op, op.operand(0), x), x, spread(op, op.operand(2), x)));
}

void select(ShloOp& op) {
  op.give(op.b.select(spread(op, op.operand(0), op.operand(1)), op.operand(1), op.operand(2)));
}

void compare(ShloOp& op) {
  constexpr std::array<std::pair<std::string_view, Direction>, 6> kDirections = {
      {{"EQ", Direction::eq},
       {"NE", Direction::ne},
       {"GE", Direction::ge},
       {"GT", Direction::gt},
       {"LE", Direction::le},
       {"LT", Direction::lt}}};
  const std::string word = op.word("comparison_direction", "");
  const auto* found = std::find_if(kDirections.begin(), kDirections.end(),
                                   [&](const auto& row) { return row.first == word; });
  if (found == kDirections.end()) fail("comparison_direction {}", quoted(word));
  hlo::CompareAttrs attrs;
  attrs.direction = found->second;
  if (op.word("compare_type", "") == "TOTALORDER") attrs.type = CompareType::total_order;
  op.give(op.b.make(Opcode::compare, {op.operand(0), op.operand(1)}, attrs));
}

// Converting a complex number to a real one takes its real part.
void convert(ShloOp& op) {
  Instr* x = op.operand(0);
  const Type type = op.result_type(0).element;
  if (tensor::is_complex(x->shape().type()) && !tensor::is_complex(type))
    x = op.b.unary(Opcode::real, x);
  op.give(op.b.convert(x, type));
}

Instr* bit_numbers(ShloOp& op, Type type, const std::vector<int64_t>& extents) {
  return op.b.iota(Shape::array(type, extents), static_cast<int64_t>(extents.size()) - 1);
}

Type unsigned_of(Type type) {
  switch (tensor::type_bits(type)) {
    case 8:
      return Type::u8;
    case 16:
      return Type::u16;
    case 32:
      return Type::u32;
    case 64:
      return Type::u64;
    default:
      fail("bits of {} are not supported", tensor::type_name(type));
  }
}

// The last dimension of an i1 tensor holds the bits of a number, lowest first.
Instr* from_bits(ShloOp& op, Instr* x, const Shape& shape) {
  const Type word = unsigned_of(shape.type());
  const std::vector<int64_t> extents = x->shape().extents();
  const auto last = static_cast<int64_t>(extents.size()) - 1;
  if (last < 0 || extents.back() != tensor::type_bits(word))
    fail("{} bits of {}", last < 0 ? 1 : extents.back(), tensor::type_name(shape.type()));
  Instr* bits =
      op.b.binary(Opcode::shift_left, op.b.convert(x, word), bit_numbers(op, word, extents));
  return op.b.bitcast_convert(op.b.reduce(Opcode::or_, bits, {last}), shape);
}

Instr* to_bits(ShloOp& op, Instr* x, const Shape& shape) {
  const Type word = unsigned_of(x->shape().type());
  const std::vector<int64_t> extents = shape.extents();
  Ints dims(extents.size() - 1);
  for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  Instr* words = op.b.bitcast_convert(x, Shape::array(word, x->shape().extents()));
  Instr* bits = op.b.binary(Opcode::shift_right_logical, op.b.broadcast(words, extents, dims),
                            bit_numbers(op, word, extents));
  Instr* one = op.b.full(Shape::array(word, extents), 1);
  return op.b.convert(op.b.binary(Opcode::and_, bits, one), Type::pred);
}

void bitcast(ShloOp& op) {
  Instr* x = op.operand(0);
  const Type from = x->shape().type(), to = op.result_type(0).element;
  const Shape shape =
      op.result_type(0).is_static() ? op.result_shape(0) : Shape::array(to, x->shape().extents());
  if (from == Type::pred && to != Type::pred) return op.give(from_bits(op, x, shape));
  if (to == Type::pred && from != Type::pred && shape.rank() == x->shape().rank() + 1)
    return op.give(to_bits(op, x, shape));
  op.give(x->shape() == shape ? x : op.b.bitcast_convert(x, shape));
}

void reduce_precision(ShloOp& op) {
  hlo::ReducePrecisionAttrs attrs;
  attrs.exponent_bits = op.integer("exponent_bits");
  attrs.mantissa_bits = op.integer("mantissa_bits");
  op.give(op.b.make(Opcode::reduce_precision, {op.operand(0)}, attrs));
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.abs", unary<Opcode::abs>, 1, 1},
    {"stablehlo.add", binary<Opcode::add>, 2, 2},
    {"stablehlo.and", binary<Opcode::and_>, 2, 2},
    {"stablehlo.atan2", binary<Opcode::atan2>, 2, 2},
    {"stablehlo.bitcast_convert", bitcast, 1, 1, true},
    {"stablehlo.cbrt", unary<Opcode::cbrt>, 1, 1},
    {"stablehlo.ceil", unary<Opcode::ceil>, 1, 1},
    {"stablehlo.clamp", clamp, 3, 3},
    {"stablehlo.compare", compare, 2, 2},
    {"stablehlo.complex", complex, 2, 2},
    {"stablehlo.convert", convert, 1, 1},
    {"stablehlo.cosine", unary<Opcode::cosine>, 1, 1},
    {"stablehlo.count_leading_zeros", unary<Opcode::count_leading_zeros>, 1, 1},
    {"stablehlo.divide", binary<Opcode::divide>, 2, 2},
    {"stablehlo.exponential", unary<Opcode::exponential>, 1, 1},
    {"stablehlo.exponential_minus_one", unary<Opcode::exponential_minus_one>, 1, 1},
    {"stablehlo.floor", unary<Opcode::floor>, 1, 1},
    {"stablehlo.imag", part<false>, 1, 1},
    {"stablehlo.is_finite", unary<Opcode::is_finite>, 1, 1},
    {"stablehlo.log", unary<Opcode::log>, 1, 1},
    {"stablehlo.log_plus_one", unary<Opcode::log_plus_one>, 1, 1},
    {"stablehlo.logistic", unary<Opcode::logistic>, 1, 1},
    {"stablehlo.maximum", binary<Opcode::maximum>, 2, 2},
    {"stablehlo.minimum", binary<Opcode::minimum>, 2, 2},
    {"stablehlo.multiply", binary<Opcode::multiply>, 2, 2},
    {"stablehlo.negate", unary<Opcode::negate>, 1, 1},
    {"stablehlo.not", unary<Opcode::not_>, 1, 1},
    {"stablehlo.or", binary<Opcode::or_>, 2, 2},
    {"stablehlo.popcnt", unary<Opcode::popcnt>, 1, 1},
    {"stablehlo.power", binary<Opcode::power>, 2, 2},
    {"stablehlo.real", part<true>, 1, 1},
    {"stablehlo.reduce_precision", reduce_precision, 1, 1},
    {"stablehlo.remainder", binary<Opcode::remainder>, 2, 2},
    {"stablehlo.round_nearest_afz", unary<Opcode::round_nearest_afz>, 1, 1},
    {"stablehlo.round_nearest_even", unary<Opcode::round_nearest_even>, 1, 1},
    {"stablehlo.rsqrt", unary<Opcode::rsqrt>, 1, 1},
    {"stablehlo.select", select, 3, 3, true},
    {"stablehlo.shift_left", binary<Opcode::shift_left>, 2, 2},
    {"stablehlo.shift_right_arithmetic", binary<Opcode::shift_right_arithmetic>, 2, 2},
    {"stablehlo.shift_right_logical", binary<Opcode::shift_right_logical>, 2, 2},
    {"stablehlo.sign", unary<Opcode::sign>, 1, 1},
    {"stablehlo.sine", unary<Opcode::sine>, 1, 1},
    {"stablehlo.sqrt", unary<Opcode::sqrt>, 1, 1},
    {"stablehlo.subtract", binary<Opcode::subtract>, 2, 2},
    {"stablehlo.tan", unary<Opcode::tan>, 1, 1},
    {"stablehlo.tanh", unary<Opcode::tanh>, 1, 1},
    {"stablehlo.xor", binary<Opcode::xor_>, 2, 2},
};

}  // namespace

std::span<const ShloEntry> shlo_elementwise_ops() { return kOps; }

}  // namespace heddle::import
