#include "precision/quantized_value.h"

#include <algorithm>

#include "opt/match.h"

namespace heddle::precision {
using hlo::Opcode;
using hlo::Shape;
using tensor::Literal;
using tensor::Type;

std::optional<PerSlice> per_slice(Instr* x) {
  if (x->shape().rank() == 0) return PerSlice{x, -1};
  if (!x->is(Opcode::broadcast)) return std::nullopt;
  Instr* from = x->operand(0);
  if (from->shape().elems() == 1) return PerSlice{from, -1};
  if (from->shape().rank() != 1) return std::nullopt;
  return PerSlice{from, x->dimensions()[0]};
}

std::optional<double> number_of(const PerSlice& slices) {
  const Instr* x = slices.value;
  while (x->is(Opcode::reshape) || x->is(Opcode::convert)) x = x->operand(0);
  if (const Literal* splat = opt::splat_of(x)) return splat->get_f64(0);
  const Literal* values = opt::constant_of(x);
  if (!values || values->elems() == 0) return std::nullopt;
  for (int64_t i = 1; i < values->elems(); ++i)
    if (values->get_f64(i) != values->get_f64(0)) return std::nullopt;
  return values->get_f64(0);
}

namespace {

bool is_byte(const Instr* x) {
  return x->shape().type() == Type::s8 || x->shape().type() == Type::u8;
}

// The dimension of `x`'s operand that becomes x's `dim`; -1 stays -1; no value if it is split or
// merged.
std::optional<int64_t> dim_before(const Instr* x, int64_t dim) {
  if (dim < 0) return dim;
  if (x->is(Opcode::transpose)) return x->dimensions()[static_cast<size_t>(dim)];
  if (!x->is(Opcode::reshape)) return std::nullopt;
  const Ints from = x->operand(0)->shape().extents(), to = x->shape().extents();
  for (const hlo::ReshapePiece& piece : hlo::reshape_pieces(from, to))
    if (piece.to_begin == dim && piece.to_end == dim + 1 && piece.from_end == piece.from_begin + 1)
      return piece.from_begin;
  return std::nullopt;
}

// The inverse.
std::optional<int64_t> dim_behind(const Instr* x, int64_t dim) {
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (dim_before(x, d) == dim) return d;
  return std::nullopt;
}

// Matches multiply(convert(integers), scale), in either order.
bool take_scale(Instr* x, QuantizedValue* found, Instr** integers) {
  if (!x->is(Opcode::multiply)) return false;
  for (size_t side : {size_t{0}, size_t{1}}) {
    Instr* converted = x->operand(side);
    const std::optional<PerSlice> scale = per_slice(x->operand(1 - side));
    if (!converted->is(Opcode::convert) || !scale) continue;
    if (!tensor::is_integer(converted->operand(0)->shape().type())) continue;
    found->scale = *scale;
    *integers = converted->operand(0);
    return true;
  }
  return false;
}

// Removes zero points: subtractions, and additions of constants, from the last to the first.
bool take_zeros(Instr* x, QuantizedValue* found, Instr** bytes) {
  while (x->is(Opcode::subtract) || x->is(Opcode::add)) {
    const std::optional<PerSlice> zero = per_slice(x->operand(1));
    if (!zero) return false;
    const std::optional<double> known = number_of(*zero);
    const int64_t sign = x->is(Opcode::subtract) ? 1 : -1;
    if (known)
      found->known_zero += sign * static_cast<int64_t>(*known);
    else if (found->zero.value || sign < 0)
      return false;
    else
      found->zero = *zero;
    x = x->operand(0);
  }
  if (x->is(Opcode::convert) && is_byte(x->operand(0))) x = x->operand(0);
  *bytes = x;
  return is_byte(x);
}

bool is_movement(const Instr* x) {
  return x->is(Opcode::transpose) || x->is(Opcode::reshape) || x->is(Opcode::slice);
}

}  // namespace

std::optional<QuantizedValue> match_quantized(Instr* x) {
  QuantizedValue found;
  Instr* at = x;
  while (is_movement(at) && opt::are_static_arrays(at)) {
    found.movement.push_back(at);
    at = at->operand(0);
  }
  std::reverse(found.movement.begin(), found.movement.end());
  if (!opt::are_static_arrays(at)) return std::nullopt;
  Instr* integers = at;
  if (at->shape().type() == Type::f32) {
    if (!take_scale(at, &found, &integers)) return std::nullopt;
  } else if (at->shape().type() != Type::s32) {
    return std::nullopt;
  }
  if (!take_zeros(integers, &found, &found.bytes)) return std::nullopt;
  for (Instr* step : found.movement)
    for (PerSlice* slices : {&found.scale, &found.zero}) {
      const std::optional<int64_t> dim =
          slices->dim < 0 ? slices->dim : dim_behind(step, slices->dim);
      if (!dim) return std::nullopt;
      slices->dim = *dim;
    }
  return found;
}

Instr* moved_bytes(const QuantizedValue& value, hlo::Builder& b) {
  Instr* x = value.bytes;
  for (const Instr* step : value.movement) {
    const Shape shape = Shape::array(x->shape().type(), step->shape().extents());
    x = b.make(step->opcode(), {x}, step->attrs(), {}, &shape);
  }
  return x;
}

Instr* spread(const PerSlice& slices, const Ints& extents, hlo::Builder& b) {
  if (slices.dim >= 0) return b.broadcast(slices.value, extents, {slices.dim});
  Instr* one = slices.value->shape().rank() == 0 ? slices.value : b.reshape(slices.value, {});
  return b.broadcast(one, extents, {});
}

std::optional<PerSlice> combined(Opcode opcode, const PerSlice& x, const PerSlice& y,
                                 hlo::Builder& b) {
  if (x.dim >= 0 && y.dim >= 0 && x.dim != y.dim) return std::nullopt;
  const PerSlice& longer = x.dim >= 0 ? x : y;
  const Ints extents = longer.dim >= 0 ? longer.value->shape().extents() : Ints{};
  const auto widened = [&](PerSlice slices) {
    if (slices.dim >= 0) return slices.value;
    return spread(slices, extents, b);
  };
  return PerSlice{b.binary(opcode, widened(x), widened(y)), longer.dim};
}

}  // namespace heddle::precision
