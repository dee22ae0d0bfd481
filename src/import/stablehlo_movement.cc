// StableHLO: constants and operations that move elements.
#include <cstring>
#include <numeric>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

using tensor::Type;

// Extents of the result: its type's, or else those of an operand. Checked before they are used.
std::vector<int64_t> known_extents(const ShloOp& op, size_t operand) {
  const MlirType& type = op.result_type(0);
  const Ints dims = type.is_static() ? type.dims : op.known_ints(operand);
  const auto count = tensor::checked_product(dims);
  if (!count || *count > op.importer.options().max_value_elems)
    fail("operand {}: a shape of {} dimensions that is too large", operand, dims.size());
  return dims;
}

// Dimensions of extent 1 may be stretched, too: they are removed first.
Instr* spread(ShloOp& op, const std::vector<int64_t>& extents) {
  Instr* x = op.operand(0);
  const Ints dims = op.ints("broadcast_dimensions", {});
  const Shape& shape = x->shape();
  if (dims.size() != static_cast<size_t>(shape.rank()))
    fail("broadcast_dimensions: {} values, wanted {}", dims.size(), shape.rank());
  std::vector<int64_t> kept;
  Ints places;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t at = dims[d], extent = shape.dim(static_cast<int64_t>(d));
    if (at < 0 || at >= static_cast<int64_t>(extents.size())) fail("broadcast dimension {}", at);
    if (extent == 1 && extents[static_cast<size_t>(at)] != 1) continue;
    kept.push_back(extent);
    places.push_back(at);
  }
  if (kept.size() != dims.size()) x = op.b.reshape(x, kept);
  return op.b.broadcast(x, extents, places);
}

void constant(ShloOp& op) {
  const MlirAttr& value = op.attr("value");
  if (!value.is(MlirAttr::Kind::dense)) fail("attribute value: wanted dense values");
  const auto count = tensor::checked_product(value.type.dims);
  if (!count || *count > op.importer.options().max_value_elems)
    fail("a constant of {} is too large", to_string(value.type));
  // A splat becomes a broadcast.
  if (value.literal->elems() == 1 && !value.type.dims.empty()) {
    Literal scalar(Shape::scalar(value.literal->type()));
    std::memcpy(scalar.mutable_data(), value.literal->data(), static_cast<size_t>(scalar.bytes()));
    return op.give(op.b.broadcast(op.b.constant(std::move(scalar)), value.type.dims, {}));
  }
  op.give(op.b.constant(*value.literal));
}

void broadcast_in_dim(ShloOp& op) { op.give(spread(op, op.result_shape(0).extents())); }

// The new dimensions come first.
void broadcast(ShloOp& op) {
  Instr* x = op.operand(0);
  std::vector<int64_t> extents = op.ints("broadcast_sizes");
  Ints dims(static_cast<size_t>(x->shape().rank()));
  std::iota(dims.begin(), dims.end(), static_cast<int64_t>(extents.size()));
  for (const int64_t extent : x->shape().extents()) extents.push_back(extent);
  op.give(op.b.broadcast(x, extents, dims));
}

void reshape(ShloOp& op) { op.give(op.b.reshape(op.operand(0), op.result_shape(0).extents())); }

void transpose(ShloOp& op) { op.give(op.b.transpose(op.operand(0), op.ints("permutation"))); }

void reverse(ShloOp& op) { op.give(op.b.reverse(op.operand(0), op.ints("dimensions"))); }

void slice(ShloOp& op) {
  op.give(op.b.slice(op.operand(0), op.ints("start_indices"), op.ints("limit_indices"),
                     op.ints("strides", {})));
}

void pad(ShloOp& op) {
  op.give(op.b.pad(op.operand(0), op.operand(1), op.ints("edge_padding_low"),
                   op.ints("edge_padding_high"),
                   op.ints("interior_padding", Ints(op.ints("edge_padding_low").size(), 0))));
}

void concatenate(ShloOp& op) {
  const int64_t dimension = op.integer("dimension");
  if (op.count() == 1) return op.give(op.operand(0));
  op.give(op.b.concatenate(op.operands, dimension));
}

void iota(ShloOp& op) { op.give(op.b.iota(op.result_shape(0), op.integer("iota_dimension"))); }

void get_dimension_size(ShloOp& op) {
  const int64_t dimension = op.integer("dimension");
  const Shape& shape = op.operand(0)->shape();
  if (dimension < 0 || dimension >= shape.rank())
    fail("dimension {} of {}", dimension, tensor::to_string(shape, false));
  op.give(op.b.scalar(Type::s32, static_cast<double>(shape.dim(dimension))));
}

// Only allows the existing size: shapes are static.
void set_dimension_size(ShloOp& op) {
  const int64_t dimension = op.integer("dimension");
  const Shape& shape = op.operand(0)->shape();
  if (dimension < 0 || dimension >= shape.rank())
    fail("dimension {} of {}", dimension, tensor::to_string(shape, false));
  const Ints size = op.known_ints(1);
  if (size.size() != 1 || size[0] != shape.dim(dimension))
    fail("dimension {} would be smaller than its bound {}: dynamic sizes are not supported",
         dimension, shape.dim(dimension));
  op.give(op.operand(0));
}

void tuple(ShloOp& op) { op.give(op.b.tuple(op.operands)); }

void get_tuple_element(ShloOp& op) {
  op.give(op.b.get_tuple_element(op.operand(0), op.integer("index")));
}

// The shape is an operand, which must be known.
void dynamic_broadcast_in_dim(ShloOp& op) { op.give(spread(op, known_extents(op, 1))); }
void dynamic_reshape(ShloOp& op) { op.give(op.b.reshape(op.operand(0), known_extents(op, 1))); }

void dynamic_iota(ShloOp& op) {
  const Shape shape = Shape::array(op.result_type(0).element, known_extents(op, 0));
  op.give(op.b.iota(shape, op.integer("iota_dimension")));
}

void dynamic_pad(ShloOp& op) {
  op.give(
      op.b.pad(op.operand(0), op.operand(1), op.known_ints(2), op.known_ints(3), op.known_ints(4)));
}

// An unknown start becomes 0: unknown extents become 1.
void real_dynamic_slice(ShloOp& op) {
  const Ints starts = op.known_ints(1, 0);
  op.give(op.b.slice(op.operand(0), starts, op.known_ints(2), op.known_ints(3)));
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.constant", constant, 0, 0, true},
    {"chlo.constant", constant, 0, 0, true},
    {"arith.constant", constant, 0, 0},
    {"stablehlo.broadcast_in_dim", broadcast_in_dim, 1, 1, true},
    {"stablehlo.broadcast", broadcast, 1, 1, true},
    {"stablehlo.reshape", reshape, 1, 1, true},
    {"stablehlo.transpose", transpose, 1, 1, true},
    {"stablehlo.reverse", reverse, 1, 1, true},
    {"stablehlo.slice", slice, 1, 1, true},
    {"stablehlo.pad", pad, 2, 2, true},
    {"stablehlo.concatenate", concatenate, 1, SIZE_MAX, true},
    {"stablehlo.iota", iota, 0, 0},
    {"stablehlo.get_dimension_size", get_dimension_size, 1, 1, true},
    {"stablehlo.set_dimension_size", set_dimension_size, 2, 2, true},
    {"stablehlo.dynamic_broadcast_in_dim", dynamic_broadcast_in_dim, 2, 2, true},
    {"stablehlo.dynamic_reshape", dynamic_reshape, 2, 2, true},
    {"chlo.dynamic_reshape", dynamic_reshape, 2, 2, true},
    {"stablehlo.dynamic_iota", dynamic_iota, 1, 1},
    {"stablehlo.dynamic_pad", dynamic_pad, 5, 5, true},
    {"stablehlo.real_dynamic_slice", real_dynamic_slice, 4, 4, true},
    {"stablehlo.tuple", tuple, 0, SIZE_MAX, true},
    {"stablehlo.get_tuple_element", get_tuple_element, 1, 1, true},
};

}  // namespace

std::span<const ShloEntry> shlo_movement_ops() { return kOps; }

}  // namespace heddle::import
