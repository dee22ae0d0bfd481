// StableHLO: operations whose shape is an operand, which must be known at import.
#include "import/stablehlo_convolution.h"
#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

// Extents that a file asks for, checked before anything is made of them.
std::vector<int64_t> extents(const ShloOp& op, size_t operand) {
  const Ints dims = op.known_ints(operand);
  const auto count = tensor::checked_product(dims);
  if (!count || *count > op.importer.options().max_value_elems)
    fail("operand {}: a shape of {} dimensions that is too large", operand, dims.size());
  return dims;
}

void dynamic_broadcast_in_dim(ShloOp& op) {
  op.give(op.b.broadcast(op.operand(0), extents(op, 1), op.ints("broadcast_dimensions", {})));
}

void dynamic_reshape(ShloOp& op) { op.give(op.b.reshape(op.operand(0), extents(op, 1))); }

void dynamic_iota(ShloOp& op) {
  const Shape shape = Shape::array(op.result_types[0]->element, extents(op, 0));
  op.give(op.b.iota(shape, op.integer("iota_dimension")));
}

void dynamic_pad(ShloOp& op) {
  op.give(op.b.pad(op.operand(0), op.operand(1), op.known_ints(2), op.known_ints(3),
                   op.known_ints(4)));
}

void real_dynamic_slice(ShloOp& op) {
  op.give(op.b.slice(op.operand(0), op.known_ints(1), op.known_ints(2), op.known_ints(3)));
}

void dynamic_conv(ShloOp& op) { give_convolution(op, op.known_ints(2)); }

constexpr ShloEntry kOps[] = {
    {"stablehlo.dynamic_broadcast_in_dim", dynamic_broadcast_in_dim, 2, 2, true},
    {"stablehlo.dynamic_reshape", dynamic_reshape, 2, 2, true},
    {"chlo.dynamic_reshape", dynamic_reshape, 2, 2, true},
    {"stablehlo.dynamic_iota", dynamic_iota, 1, 1},
    {"stablehlo.dynamic_pad", dynamic_pad, 5, 5, true},
    {"stablehlo.real_dynamic_slice", real_dynamic_slice, 4, 4, true},
    {"stablehlo.dynamic_conv", dynamic_conv, 3, 3},
};

}  // namespace

std::span<const ShloEntry> shlo_dynamic_ops() { return kOps; }

}  // namespace heddle::import
