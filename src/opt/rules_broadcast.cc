#include <algorithm>

#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

// The order of the operand's dimensions in the result.
Ints result_order(const Instr* broadcast) {
  Ints order = counting(static_cast<int64_t>(broadcast->dimensions().size()));
  const Ints& dims = broadcast->dimensions();
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return dims[static_cast<size_t>(i)] < dims[static_cast<size_t>(j)];
  });
  return order;
}

// The common form of an elementwise operator's broadcast operands.
struct Common {
  Ints extents, dimensions;
  bool found = false;
};

// An operand in the common form: the operand of the broadcast, or a broadcast scalar.
Instr* narrowed(Instr* operand, const Common& common, bool keeps_scalar, Builder& b) {
  if (keeps_scalar) return operand;
  if (has_scalar(operand)) return broadcast_scalar(scalar_of(operand, b), common.extents, b);
  return operand->operand(0);
}

}  // namespace

Instr* broadcast_same(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!are_static_arrays(x) || x->shape().elems() != y->shape().elems()) return nullptr;
  if (x->shape().elems() == 0) return nullptr;
  if (is_counting(x->dimensions()) && x->shape().rank() == y->shape().rank()) return y;
  if (!is_ascending(x->dimensions())) return nullptr;
  return b.reshape(y, x->shape().extents());
}

Instr* broadcast_order(Instr* x, Builder& b) {
  if (is_ascending(x->dimensions()) || !are_static_arrays(x)) return nullptr;
  const Ints order = result_order(x);
  return b.broadcast(b.transpose(x->operand(0), order), x->shape().extents(),
                     permuted(x->dimensions(), order));
}

Instr* broadcast_broadcast(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::broadcast) || !are_static_arrays(x) || !are_static_arrays(y)) return nullptr;
  return b.broadcast(y->operand(0), x->shape().extents(),
                     permuted(x->dimensions(), y->dimensions()));
}

Instr* broadcast_reshape(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::reshape) || !are_static_arrays(x) || !are_static_arrays(y)) return nullptr;
  const Ints from = y->operand(0)->shape().extents(), to = y->shape().extents();
  if (y->shape().elems() == 0 || from.size() >= to.size()) return nullptr;
  Ints dims(from.size());
  for (const ReshapePiece& piece : reshape_pieces(from, to)) {
    if (piece.from_begin == piece.from_end) continue;  // an added extent of 1
    if (piece.from_end != piece.from_begin + 1 || piece.to_end != piece.to_begin + 1)
      return nullptr;
    dims[static_cast<size_t>(piece.from_begin)] =
        x->dimensions()[static_cast<size_t>(piece.to_begin)];
  }
  return b.broadcast(y->operand(0), x->shape().extents(), dims);
}

Instr* broadcast_iota(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::iota) || !are_static_arrays(x)) return nullptr;
  const auto d = static_cast<size_t>(y->attrs_as<hlo::DimensionAttrs>().dimension);
  return b.iota(x->shape().without_layout(), x->dimensions()[d]);
}

// Computes before broadcasting. Operands that are a splat of one scalar fit any common form.
Instr* elementwise_broadcasts(Instr* x, Builder& b) {
  if (!are_static_arrays(x) || x->shape().rank() == 0) return nullptr;
  const Ints extents = x->shape().extents();
  Common common;
  for (const Instr* operand : x->operands()) {
    // (A bitcast-convert may change the extents; a select and a clamp take scalars.)
    if (operand->shape().extents() != extents) {
      const bool takes_scalars = x->is(Opcode::select) || x->is(Opcode::clamp);
      if (!takes_scalars || operand->shape().rank() != 0) return nullptr;
      continue;
    }
    if (has_scalar(operand)) continue;
    if (!operand->is(Opcode::broadcast)) return nullptr;
    const Ints from = operand->operand(0)->shape().extents();
    if (common.found && (common.extents != from || common.dimensions != operand->dimensions()))
      return nullptr;
    common = {from, operand->dimensions(), true};
  }
  const Shape narrow = Shape::array(x->shape().type(), common.extents);
  if (narrow.elems() >= x->shape().elems()) return nullptr;
  std::vector<Instr*> operands;
  for (Instr* operand : x->operands())
    operands.push_back(narrowed(operand, common, operand->shape().rank() == 0, b));
  Instr* result = b.make(x->opcode(), std::move(operands), x->attrs(), {}, &narrow);
  return b.broadcast(result, extents, common.dimensions);
}

}  // namespace heddle::opt::rules
