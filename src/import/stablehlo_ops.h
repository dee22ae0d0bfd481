// The operator table: one row per operation, one function per family (stablehlo_<family>.cc).
#pragma once

#include <span>

#include "import/stablehlo_importer.h"

namespace heddle::import {

std::span<const ShloEntry> shlo_elementwise_ops();
std::span<const ShloEntry> shlo_movement_ops();
std::span<const ShloEntry> shlo_indexing_ops();
std::span<const ShloEntry> shlo_reduction_ops();
std::span<const ShloEntry> shlo_product_ops();
std::span<const ShloEntry> shlo_control_ops();
std::span<const ShloEntry> shlo_convolution_ops();
std::span<const ShloEntry> shlo_check_ops();
std::span<const ShloEntry> shlo_custom_ops();
std::span<const ShloEntry> shlo_chlo_ops();
std::span<const ShloEntry> shlo_special_ops();
std::span<const ShloEntry> shlo_parallel_ops();
std::span<const ShloEntry> shlo_quantize_ops();

// A tensor type as a static shape; also tuples and tokens. Throws Failure if it is dynamic.
Shape shlo_shape(const MlirType& type);

// A field of dimension numbers, such as #stablehlo.gather<...>; missing: empty.
Ints integer_field(const MlirAttr& numbers, std::string_view name);

// Operations with the same name in HLO.
template <Opcode kOpcode>
void unary(ShloOp& op) {
  op.give(op.b.unary(kOpcode, op.operand(0)));
}

template <Opcode kOpcode>
void binary(ShloOp& op) {
  op.give(op.b.binary(kOpcode, op.operand(0), op.operand(1)));
}

}  // namespace heddle::import
