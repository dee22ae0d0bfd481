// CHLO: operations that HLO has too, broadcasting ones, and small compositions.
#include <limits>

#include "hlo/shape_inference.h"
#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

using hlo::Direction;
using tensor::Type;

// Broadcasts the operand of lower rank to the rank of the other by `broadcast_dimensions`.
void align(ShloOp& op) {
  const MlirAttr* dims = op.op.attr("broadcast_dimensions");
  if (dims == nullptr) return;
  const int64_t a = op.operand(0)->shape().rank(), c = op.operand(1)->shape().rank();
  if (a == c) return;
  const size_t low = a < c ? 0 : 1;
  const Ints places = op.ints("broadcast_dimensions");
  const Shape& shape = op.operand(low)->shape();
  if (places.size() != static_cast<size_t>(shape.rank()))
    fail("broadcast_dimensions: {} values, wanted {}", places.size(), shape.rank());
  std::vector<int64_t> extents(static_cast<size_t>(std::max(a, c)), 1);
  for (size_t d = 0; d < places.size(); ++d) {
    if (places[d] < 0 || places[d] >= std::max(a, c)) fail("broadcast dimension {}", places[d]);
    extents[static_cast<size_t>(places[d])] = shape.dim(static_cast<int64_t>(d));
  }
  op.operands[low] = op.b.broadcast(op.operand(low), extents, places);
}

template <Opcode kOpcode>
void broadcast_binary(ShloOp& op) {
  align(op);
  op.give(op.b.binary_broadcast(kOpcode, op.operand(0), op.operand(1)));
}

void broadcast_compare(ShloOp& op) {
  align(op);
  const std::string word = op.word("comparison_direction", "");
  const Direction direction = word == "EQ"   ? Direction::eq
                              : word == "NE" ? Direction::ne
                              : word == "GE" ? Direction::ge
                              : word == "GT" ? Direction::gt
                              : word == "LE" ? Direction::le
                                             : Direction::lt;
  op.give(op.b.compare_broadcast(direction, op.operand(0), op.operand(1)));
}

void broadcast_select(ShloOp& op) {
  const std::vector<int64_t> extents = op.result_shape(0).extents();
  op.give(op.b.select(op.b.broadcast_to(op.operand(0), extents),
                      op.b.broadcast_to(op.operand(1), extents),
                      op.b.broadcast_to(op.operand(2), extents)));
}

void atan(ShloOp& op) {
  Instr* x = op.operand(0);
  op.give(op.b.binary(Opcode::atan2, x, op.b.full(x->shape(), 1)));
}

void square(ShloOp& op) { op.give(op.b.binary(Opcode::multiply, op.operand(0), op.operand(0))); }

void conj(ShloOp& op) {
  Instr* x = op.operand(0);
  if (!tensor::is_complex(x->shape().type())) return op.give(x);
  op.give(op.b.make(Opcode::complex, {op.b.unary(Opcode::real, x),
                                      op.b.unary(Opcode::negate, op.b.unary(Opcode::imag, x))}));
}

void constant_like(ShloOp& op) {
  const Shape& shape = op.operand(0)->shape();
  op.give(op.b.full(shape, op.number("value", 0)));
}

// -1: negative infinity, 1: positive, 0: either.
template <int kSign>
void is_inf(ShloOp& op) {
  Instr* x = op.operand(0);
  if (kSign == 0) x = op.b.unary(Opcode::abs, x);
  const double infinity = std::numeric_limits<double>::infinity();
  op.give(op.b.compare(Direction::eq, x, op.b.full(x->shape(), kSign < 0 ? -infinity : infinity)));
}

void top_k(ShloOp& op) {
  hlo::TopKAttrs attrs;
  attrs.k = op.integer("k");
  attrs.is_stable = true;
  op.give_tuple(op.b.make(Opcode::topk, {op.operand(0)}, attrs));
}

void ragged_dot(ShloOp& op) {
  const MlirAttr& numbers = op.attr("ragged_dot_dimension_numbers");
  const auto field = [&](std::string_view name) {
    Ints values;
    const MlirAttr* found = numbers.field(name);
    if (found != nullptr && !integers_of(*found, &values)) fail("{}: wanted integers", name);
    return values;
  };
  hlo::RaggedDotAttrs attrs;
  attrs.dot.lhs_batch_dims = field("lhs_batching_dimensions");
  attrs.dot.rhs_batch_dims = field("rhs_batching_dimensions");
  attrs.dot.lhs_contracting_dims = field("lhs_contracting_dimensions");
  attrs.dot.rhs_contracting_dims = field("rhs_contracting_dimensions");
  attrs.lhs_ragged_dims = field("lhs_ragged_dimensions");
  attrs.rhs_group_dims = field("rhs_group_dimensions");
  attrs.dot.operand_precision = op.precision();
  op.give(op.b.make(Opcode::ragged_dot, op.operands, std::move(attrs)));
}

constexpr ShloEntry kOps[] = {
    {"chlo.acos", unary<Opcode::acos>, 1, 1},
    {"chlo.acosh", unary<Opcode::acosh>, 1, 1},
    {"chlo.asin", unary<Opcode::asin>, 1, 1},
    {"chlo.asinh", unary<Opcode::asinh>, 1, 1},
    {"chlo.atan", atan, 1, 1},
    {"chlo.atanh", unary<Opcode::atanh>, 1, 1},
    {"chlo.cosh", unary<Opcode::cosh>, 1, 1},
    {"chlo.sinh", unary<Opcode::sinh>, 1, 1},
    {"chlo.tan", unary<Opcode::tan>, 1, 1},
    {"chlo.erf", unary<Opcode::erf>, 1, 1},
    {"chlo.erfc", unary<Opcode::erfc>, 1, 1},
    {"chlo.conj", conj, 1, 1},
    {"chlo.square", square, 1, 1},
    {"chlo.constant_like", constant_like, 1, 1},
    {"chlo.is_inf", is_inf<0>, 1, 1},
    {"chlo.is_pos_inf", is_inf<1>, 1, 1},
    {"chlo.is_neg_inf", is_inf<-1>, 1, 1},
    {"chlo.mulhi", binary<Opcode::mulhi>, 2, 2},
    {"chlo.top_k", top_k, 1, 1},
    {"chlo.ragged_dot", ragged_dot, 3, 3},
    {"chlo.broadcast_add", broadcast_binary<Opcode::add>, 2, 2},
    {"chlo.broadcast_and", broadcast_binary<Opcode::and_>, 2, 2},
    {"chlo.broadcast_atan2", broadcast_binary<Opcode::atan2>, 2, 2},
    {"chlo.broadcast_compare", broadcast_compare, 2, 2},
    {"chlo.broadcast_complex", broadcast_binary<Opcode::complex>, 2, 2},
    {"chlo.broadcast_divide", broadcast_binary<Opcode::divide>, 2, 2},
    {"chlo.broadcast_maximum", broadcast_binary<Opcode::maximum>, 2, 2},
    {"chlo.broadcast_minimum", broadcast_binary<Opcode::minimum>, 2, 2},
    {"chlo.broadcast_multiply", broadcast_binary<Opcode::multiply>, 2, 2},
    {"chlo.broadcast_or", broadcast_binary<Opcode::or_>, 2, 2},
    {"chlo.broadcast_power", broadcast_binary<Opcode::power>, 2, 2},
    {"chlo.broadcast_remainder", broadcast_binary<Opcode::remainder>, 2, 2},
    {"chlo.broadcast_select", broadcast_select, 3, 3},
    {"chlo.broadcast_shift_left", broadcast_binary<Opcode::shift_left>, 2, 2},
    {"chlo.broadcast_shift_right_arithmetic", broadcast_binary<Opcode::shift_right_arithmetic>, 2,
     2},
    {"chlo.broadcast_shift_right_logical", broadcast_binary<Opcode::shift_right_logical>, 2, 2},
    {"chlo.broadcast_subtract", broadcast_binary<Opcode::subtract>, 2, 2},
    {"chlo.broadcast_xor", broadcast_binary<Opcode::xor_>, 2, 2},
};

}  // namespace

std::span<const ShloEntry> shlo_chlo_ops() { return kOps; }

}  // namespace heddle::import
