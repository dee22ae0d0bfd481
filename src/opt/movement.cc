// Reshapes and transposes of cheap arrays (splats, broadcasts, iotas, constants) as equivalent
// cheap arrays.
#include <algorithm>
#include <memory>

#include "opt/rules.h"

namespace heddle::opt {
namespace {

// A broadcast under a reshape: pieces of the reshape that consist of repeated dimensions stay
// repeated, the others become a reshape of the operand. Pieces that mix both are not handled.
struct ReshapedBroadcast {
  Ints operand_extents, dimensions;  // of the replacing broadcast
};

std::optional<ReshapedBroadcast> reshaped_broadcast(const Instr* x, const Ints& extents) {
  const Ints &dims = x->dimensions(), from = x->shape().extents();
  if (!is_ascending(dims) || x->shape().elems() == 0) return std::nullopt;
  ReshapedBroadcast result;
  for (const ReshapePiece& piece : reshape_pieces(from, extents)) {
    bool repeats = false, reads = false;
    for (int64_t d = piece.from_begin; d < piece.from_end; ++d) {
      if (from[static_cast<size_t>(d)] == 1) continue;
      (contains(dims, d) ? reads : repeats) = true;
    }
    if (repeats && reads) return std::nullopt;
    if (!reads) continue;
    for (int64_t d = piece.to_begin; d < piece.to_end; ++d) {
      result.operand_extents.push_back(extents[static_cast<size_t>(d)]);
      result.dimensions.push_back(d);
    }
  }
  return result;
}

// The dimension of `to` that equals dimension `d` of `from`; -1: it is split, merged or gone.
int64_t whole_dimension(const Ints& from, const Ints& to, int64_t d) {
  for (const ReshapePiece& piece : reshape_pieces(from, to))
    if (piece.from_begin == d && piece.from_end == d + 1 && piece.to_end == piece.to_begin + 1)
      return piece.to_begin;
  return -1;
}

// The same memory with other extents: constants may be gigabytes and are not copied.
Literal reshaped(const Literal& literal, const Ints& extents) {
  auto owner = std::make_shared<Literal>(literal);
  return Literal::view(Shape::array(literal.type(), extents), owner->data(), owner);
}

// Larger constants are not permuted at compile time (fold_constants).
constexpr int64_t kMaxTransposedBytes = 64 * 1024;

}  // namespace

bool has_scalar(const Instr* x) {
  while (x->is(Opcode::broadcast)) x = x->operand(0);
  if (x->shape().is_scalar()) return true;
  return x->is(Opcode::constant) && x->shape().is_array() && x->shape().elems() == 1;
}

Instr* scalar_of(Instr* x, Builder& b) {
  if (!has_scalar(x)) return nullptr;
  while (x->is(Opcode::broadcast)) x = x->operand(0);
  return x->shape().rank() == 0 ? x : b.constant(reshaped(x->literal(), {}));
}

Instr* broadcast_scalar(Instr* scalar, const Ints& extents, Builder& b) {
  return extents.empty() ? scalar : b.broadcast(scalar, extents, {});
}

Instr* reshape_cheaply(Instr* x, const Ints& extents, Builder& b, bool build) {
  if (!is_static_array(x)) return nullptr;
  if (x->shape().extents() == extents) return x;
  // Before the next line, which would rebuild a broadcast that repeats nothing.
  if (const Literal* value = constant_of(x))
    return build ? b.constant(reshaped(*value, extents)) : x;
  if (has_scalar(x)) return build ? broadcast_scalar(scalar_of(x, b), extents, b) : x;
  if (x->is(Opcode::iota)) {
    const int64_t d = x->attrs_as<hlo::DimensionAttrs>().dimension;
    if (x->shape().elems() == 0) return nullptr;
    const int64_t to = whole_dimension(x->shape().extents(), extents, d);
    if (to < 0) return nullptr;
    return build ? b.iota(Shape::array(x->shape().type(), extents), to) : x;
  }
  if (!x->is(Opcode::broadcast)) return nullptr;
  const std::optional<ReshapedBroadcast> made = reshaped_broadcast(x, extents);
  if (!made) return nullptr;
  if (!build) return x;
  Instr* operand = x->operand(0);
  if (operand->shape().extents() != made->operand_extents)
    operand = b.reshape(operand, made->operand_extents);
  return b.broadcast(operand, extents, made->dimensions);
}

Instr* transpose_cheaply(Instr* x, const Ints& permutation, Builder& b, bool build) {
  if (!is_static_array(x)) return nullptr;
  const Ints extents = permuted(x->shape().extents(), permutation), back = inverted(permutation);
  if (is_counting(permutation)) return x;
  if (has_scalar(x)) return build ? broadcast_scalar(scalar_of(x, b), extents, b) : x;
  if (x->is(Opcode::broadcast)) {
    if (!build) return x;
    return b.broadcast(x->operand(0), extents, permuted(back, x->dimensions()));
  }
  if (x->is(Opcode::iota)) {
    if (!build) return x;
    const auto d = static_cast<size_t>(x->attrs_as<hlo::DimensionAttrs>().dimension);
    return b.iota(Shape::array(x->shape().type(), extents), back[d]);
  }
  if (constant_of(x) && x->shape().bytes() <= kMaxTransposedBytes)
    return build ? b.transpose(x, permutation) : x;
  return nullptr;
}

}  // namespace heddle::opt
