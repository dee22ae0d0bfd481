#include "opt/match.h"

#include <algorithm>
#include <cmath>

namespace heddle::opt {

bool are_static_arrays(const Instr* x) {
  return is_static_array(x) &&
         std::all_of(x->operands().begin(), x->operands().end(), is_static_array);
}

const Literal* constant_of(const Instr* x) {
  return x->is(Opcode::constant) && x->shape().is_array() ? &x->literal() : nullptr;
}

const Literal* splat_of(const Instr* x) {
  while (x->is(Opcode::broadcast)) x = x->operand(0);
  const Literal* value = constant_of(x);
  return value && value->elems() == 1 ? value : nullptr;
}

bool is_splat(const Instr* x, double number) {
  const Literal* value = splat_of(x);
  if (!value || tensor::is_complex(value->type())) return false;
  const double got = value->get_f64(0);
  return got == number && std::signbit(got) == std::signbit(number);
}

bool is_negative_zero(const Instr* x) { return is_float(x) && is_splat(x, -0.0); }

bool is_all_ones(const Instr* x) {
  const Literal* value = splat_of(x);
  if (!value || !(is_integer(x) || is_pred(x))) return false;
  const int bits = tensor::type_bits(value->type());
  const uint64_t ones = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return (value->get_bits(0) & ones) == ones;
}

bool is_zero_bits(const Instr* x) { return (is_integer(x) || is_pred(x)) && is_splat(x, 0); }

bool is_constant_like(const Instr* x) {
  while (x->is(Opcode::broadcast)) x = x->operand(0);
  return x->is(Opcode::constant);
}

namespace {

bool is_constant_expression(const Instr* x, int* left) {
  if (--*left < 0 || !is_static_array(x)) return false;
  if (x->is(Opcode::constant) || x->is(Opcode::iota)) return true;
  const bool movement = x->is(Opcode::broadcast) || x->is(Opcode::reshape) ||
                        x->is(Opcode::transpose) || x->is(Opcode::pad) || x->is(Opcode::slice) ||
                        x->is(Opcode::concatenate) || x->is(Opcode::reverse);
  return (movement || is_elementwise(x)) &&
         std::all_of(x->operands().begin(), x->operands().end(),
                     [&](const Instr* operand) { return is_constant_expression(operand, left); });
}

}  // namespace

bool is_constant_expression(const Instr* x) {
  int left = 256;
  return is_constant_expression(x, &left);
}

bool is_never_negative_zero(const Instr* x) {
  switch (x->opcode()) {
    case Opcode::exponential:
    case Opcode::logistic:
    case Opcode::abs:
    case Opcode::cosine:
    case Opcode::cosh:
      return true;
    case Opcode::convert:
      return is_integer(x->operand(0)) || is_pred(x->operand(0));
    case Opcode::multiply:
      return x->operand(0) == x->operand(1);
    case Opcode::add:  // only -0 + -0 gives -0
      return is_splat(x->operand(1), 0.0) || is_splat(x->operand(0), 0.0);
    case Opcode::maximum:
      return is_splat(x->operand(1), 0.0) || is_splat(x->operand(0), 0.0);
    default:
      return false;
  }
}

bool converts_exactly(Type from, Type to) {
  if (from == to) return true;
  if (tensor::is_complex(from) || tensor::is_complex(to))
    return from == Type::c64 && to == Type::c128;
  if (to == Type::pred) return false;
  // Sign and magnitude bits of integers; pred is an unsigned bit.
  const bool has_sign = tensor::is_signed_integer(from);
  const int magnitude = tensor::type_bits(from) - (has_sign ? 1 : 0);
  if (tensor::is_integer(to)) {
    if (tensor::is_float(from)) return false;
    if (tensor::is_signed_integer(to)) return magnitude <= tensor::type_bits(to) - 1;
    return !has_sign && magnitude <= tensor::type_bits(to);
  }
  const tensor::FloatFormat& wide = tensor::float_format(to);
  if (!tensor::is_float(from)) {
    // The most negative number is a power of two: its magnitude needs no more mantissa.
    return wide.has_sign && wide.has_zero && magnitude <= wide.mantissa_bits + 1 &&
           std::ldexp(1.0, magnitude) <= wide.max_finite;
  }
  const tensor::FloatFormat& narrow = tensor::float_format(from);
  // Small types differ in features (signs, infinities, NaN); only the big ones have them all.
  const bool holds_all = to == Type::f64 || to == Type::f32 ||
                         ((to == Type::f16 || to == Type::bf16) && tensor::type_bits(from) <= 8);
  return holds_all && narrow.mantissa_bits <= wide.mantissa_bits &&
         narrow.max_finite <= wide.max_finite &&
         // Their smallest subnormal numbers: 2^(1 - bias - mantissa bits).
         1 - narrow.bias - narrow.mantissa_bits >= 1 - wide.bias - wide.mantissa_bits;
}

Ints counting(int64_t n) {
  Ints result(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) result[static_cast<size_t>(i)] = i;
  return result;
}

bool is_counting(const Ints& list) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool is_ascending(const Ints& list) {
  return std::adjacent_find(list.begin(), list.end(),
                            [](int64_t a, int64_t b) { return a >= b; }) == list.end();
}

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Ints permuted(const Ints& list, const Ints& order) {
  Ints result;
  result.reserve(order.size());
  for (int64_t i : order) result.push_back(list[static_cast<size_t>(i)]);
  return result;
}

Ints inverted(const Ints& permutation) {
  Ints result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

Ints without_ones(const Ints& extents) {
  Ints result;
  std::copy_if(extents.begin(), extents.end(), std::back_inserter(result),
               [](int64_t extent) { return extent != 1; });
  return result;
}

}  // namespace heddle::opt
