// StableHLO: quantised values, represented by their stored integers.
#include <deque>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

using tensor::Type;

// One number for all elements, or one for each position along the quantised axis of `like`.
Instr* along_axis(hlo::Builder& b, Type type, const std::vector<double>& values,
                  const Quantization& q, const Shape& like) {
  Literal literal(q.axis < 0 ? Shape::scalar(type)
                             : Shape::array(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) literal.set_f64(static_cast<int64_t>(i), values[i]);
  if (q.axis >= 0 &&
      (q.axis >= like.rank() || like.dim(q.axis) != static_cast<int64_t>(values.size())))
    fail("{} scales for axis {} of {}", values.size(), q.axis, tensor::to_string(like, false));
  return b.broadcast(b.constant(std::move(literal)), like.extents(),
                     q.axis < 0 ? Ints{} : Ints{q.axis});
}

std::vector<double> zero_points(const Quantization& q) {
  return {q.zero_points.begin(), q.zero_points.end()};
}

void check(const Quantization& q) {
  if (!q.blocks.empty()) fail("quantisation by blocks ({}) is not supported", q.blocks);
}

// (stored - zero point) * scale
Instr* dequantize(hlo::Builder& b, Instr* x, const Quantization& q) {
  check(q);
  const Shape shape = x->shape();
  const Type wide = tensor::type_bits(shape.type()) < 32 ? Type::s32 : Type::s64;
  Instr* zero = along_axis(b, wide, zero_points(q), q, shape);
  Instr* shifted = b.binary(Opcode::subtract, b.convert(x, wide), zero);
  return b.binary(Opcode::multiply, b.convert(shifted, q.expressed),
                  along_axis(b, q.expressed, q.scales, q, shape));
}

// The nearest stored value, ties to even, within the type's limits.
Instr* quantize(hlo::Builder& b, Instr* x, const Quantization& q, Type storage) {
  check(q);
  x = b.convert(x, q.expressed);
  const Shape shape = x->shape();
  Instr* scaled = b.binary(Opcode::divide, x, along_axis(b, q.expressed, q.scales, q, shape));
  Instr* moved = b.binary(Opcode::add, b.unary(Opcode::round_nearest_even, scaled),
                          along_axis(b, q.expressed, zero_points(q), q, shape));
  Instr* low = b.full(shape, static_cast<double>(q.minimum));
  Instr* high = b.full(shape, static_cast<double>(q.maximum));
  return b.convert(b.clamp(low, moved, high), storage);
}

bool same_scale(const Quantization& a, const Quantization& b) {
  return a.scales == b.scales && a.zero_points == b.zero_points && a.minimum == b.minimum &&
         a.maximum == b.maximum && a.blocks == b.blocks;
}

// Whether stored integers may be moved unchanged.
bool may_move(const ShloOp& op) {
  if (op.op.name == "stablehlo.bitcast_convert" || op.op.name == "stablehlo.constant" ||
      op.op.name.starts_with("check."))
    return true;
  const Quantization* first = nullptr;
  for (const auto* types : {&op.operand_types, &op.result_types})
    for (const MlirType* type : *types) {
      if (!type->quantization) continue;
      if (first != nullptr && !same_scale(*first, *type->quantization)) return false;
      first = type->quantization.get();
    }
  return true;
}

// The type of the real numbers that the stored ones represent.
const MlirType* expressed(const MlirType* type, std::deque<MlirType>& types) {
  if (!type->quantization) return type;
  MlirType& real = types.emplace_back(*type);
  real.element = type->quantization->expressed;
  real.quantization = nullptr;
  return &real;
}

void uniform_quantize(ShloOp& op) {
  const MlirType& type = op.result_type(0);
  if (!type.quantization) fail("the result is {}, wanted a quantised type", to_string(type));
  Instr* x = op.operand(0);
  if (op.operand_types[0]->quantization)
    x = dequantize(op.b, x, *op.operand_types[0]->quantization);
  op.give(quantize(op.b, x, *type.quantization, type.element));
}

void uniform_dequantize(ShloOp& op) {
  const MlirType& type = *op.operand_types[0];
  if (!type.quantization) fail("the operand is {}, wanted a quantised type", to_string(type));
  op.give(
      op.b.convert(dequantize(op.b, op.operand(0), *type.quantization), op.result_type(0).element));
}

constexpr ShloEntry kOps[] = {
    {"stablehlo.uniform_quantize", uniform_quantize, 1, 1},
    {"stablehlo.uniform_dequantize", uniform_dequantize, 1, 1},
};

}  // namespace

bool has_quantized(const ShloOp& op) {
  for (const auto* types : {&op.operand_types, &op.result_types})
    for (const MlirType* type : *types)
      if (type->quantization) return true;
  return false;
}

void translate_quantized(ShloOp& op, const ShloEntry& entry) {
  if (entry.handler == uniform_quantize || entry.handler == uniform_dequantize ||
      op.op.name == "func.call" || op.op.name == "stablehlo.composite" ||
      (entry.moves && may_move(op)))
    return entry.handler(op);
  if (!op.op.regions.empty()) fail("regions on quantised values are not supported");
  std::deque<MlirType> types;
  const std::vector<const MlirType*> quantized_results = op.result_types;
  for (size_t i = 0; i < op.count(); ++i) {
    if (op.operand_types[i]->quantization)
      op.operands[i] = dequantize(op.b, op.operands[i], *op.operand_types[i]->quantization);
    op.operand_types[i] = expressed(op.operand_types[i], types);
  }
  for (const MlirType*& type : op.result_types) type = expressed(type, types);
  entry.handler(op);
  op.result_types = quantized_results;
  if (!op.b.status() || op.results.size() != quantized_results.size()) return;
  for (size_t i = 0; i < op.results.size(); ++i)
    if (const MlirType& type = *op.result_types[i]; type.quantization)
      op.results[i] = quantize(op.b, op.results[i], *type.quantization, type.element);
}

std::span<const ShloEntry> shlo_quantize_ops() { return kOps; }

}  // namespace heddle::import
