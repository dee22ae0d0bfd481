#include <cmath>

#include "hlo/combiner.h"
#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

bool is_real(const Instr* x) { return is_float(x) || is_integer(x); }

Instr* zero_like(const Instr* x, Builder& b) { return b.full(x->shape().without_layout(), 0); }

// The most negative (or positive) value of the type; floats: an infinity, if the type has one.
bool is_extreme(const Instr* x, bool least) {
  const Literal* value = splat_of(x);
  if (!value) return false;
  if (is_float(x)) {
    const double number = value->get_f64(0);
    return std::isinf(number) && (number < 0) == least;
  }
  const int bits = tensor::type_bits(value->type());
  if (tensor::is_signed_integer(value->type())) {
    const int64_t most_negative = -(int64_t{1} << (bits - 2)) * 2;
    return value->get_s64(0) == (least ? most_negative : -(most_negative + 1));
  }
  return least ? is_zero_bits(x) : is_all_ones(x);
}

}  // namespace

Instr* add_zero(Instr* x, Builder&) {
  for (size_t i : {size_t{1}, size_t{0}}) {
    const Instr* zero = x->operand(i);
    Instr* rest = x->operand(1 - i);
    if (is_integer(x) && is_zero_bits(zero)) return rest;
    if (!is_float(x)) continue;
    if (is_negative_zero(zero)) return rest;
    if (is_splat(zero, 0) && is_never_negative_zero(rest)) return rest;
  }
  return nullptr;
}

Instr* add_negate(Instr* x, Builder& b) {
  for (size_t i : {size_t{1}, size_t{0}})
    if (x->operand(i)->is(Opcode::negate))
      return b.binary(Opcode::subtract, x->operand(1 - i), x->operand(i)->operand(0));
  return nullptr;
}

Instr* subtract_zero(Instr* x, Builder&) {
  return is_real(x) && is_splat(x->operand(1), 0) ? x->operand(0) : nullptr;
}

Instr* subtract_self(Instr* x, Builder& b) {
  return is_integer(x) && is_static_array(x) && x->operand(0) == x->operand(1) ? zero_like(x, b)
                                                                               : nullptr;
}

Instr* subtract_negate(Instr* x, Builder& b) {
  if (!x->operand(1)->is(Opcode::negate)) return nullptr;
  return b.binary(Opcode::add, x->operand(0), x->operand(1)->operand(0));
}

Instr* multiply_one(Instr* x, Builder& b) {
  if (!is_real(x)) return nullptr;
  for (size_t i : {size_t{1}, size_t{0}}) {
    if (is_splat(x->operand(i), 1)) return x->operand(1 - i);
    const bool negates = is_float(x) || tensor::is_signed_integer(x->shape().type());
    if (negates && is_splat(x->operand(i), -1)) return b.unary(Opcode::negate, x->operand(1 - i));
  }
  return nullptr;
}

Instr* multiply_zero(Instr* x, Builder&) {
  for (size_t i : {size_t{1}, size_t{0}})
    if (is_integer(x) && is_zero_bits(x->operand(i))) return x->operand(i);
  return nullptr;
}

Instr* multiply_negates(Instr* x, Builder& b) {
  Instr *left = x->operand(0), *right = x->operand(1);
  if (tensor::is_complex(x->shape().type())) return nullptr;
  if (!left->is(Opcode::negate) || !right->is(Opcode::negate)) return nullptr;
  return b.binary(Opcode::multiply, left->operand(0), right->operand(0));
}

Instr* divide_one(Instr* x, Builder&) {
  return is_real(x) && is_splat(x->operand(1), 1) ? x->operand(0) : nullptr;
}

// Both forms give the exact quotient, rounded once.
Instr* divide_power_of_two(Instr* x, Builder& b) {
  const Literal* divisor = splat_of(x->operand(1));
  if (!divisor || !is_float(x) || !is_static_array(x)) return nullptr;
  const Type type = divisor->type();
  const double number = divisor->get_f64(0), inverse = 1 / number;
  int exponent = 0;
  if (!std::isfinite(number) || std::abs(std::frexp(number, &exponent)) != 0.5) return nullptr;
  // In f64 the inverse of a subnormal overflows.
  if (!std::isfinite(inverse) ||
      tensor::float_from_bits(type, tensor::float_to_bits(type, inverse)) != inverse)
    return nullptr;
  return b.binary(Opcode::multiply, x->operand(0), b.full(x->shape().without_layout(), inverse));
}

Instr* remainder_one(Instr* x, Builder& b) {
  return is_integer(x) && is_static_array(x) && is_splat(x->operand(1), 1) ? zero_like(x, b)
                                                                           : nullptr;
}

Instr* negate_negate(Instr* x, Builder&) {
  return x->operand(0)->is(Opcode::negate) ? x->operand(0)->operand(0) : nullptr;
}

Instr* abs_abs(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (tensor::is_complex(y->shape().type())) return nullptr;
  if (y->is(Opcode::abs)) return y;
  return y->is(Opcode::negate) ? b.unary(Opcode::abs, y->operand(0)) : nullptr;
}

Instr* power_small(Instr* x, Builder& b) {
  Instr *base = x->operand(0), *exponent = x->operand(1);
  if (!is_real(x) || !is_static_array(x)) return nullptr;
  if (is_splat(exponent, 1)) return base;
  if (is_splat(exponent, 2)) return b.binary(Opcode::multiply, base, base);
  if (is_splat(exponent, 0)) return b.full(x->shape().without_layout(), 1);
  if (is_float(x) && is_splat(exponent, -1))
    return b.binary(Opcode::divide, b.full(x->shape().without_layout(), 1), base);
  return nullptr;
}

Instr* idempotent(Instr* x, Builder&) {
  switch (x->opcode()) {
    case Opcode::maximum:
    case Opcode::minimum:
    case Opcode::and_:
    case Opcode::or_:
      return x->operand(0) == x->operand(1) ? x->operand(0) : nullptr;
    default:
      return nullptr;
  }
}

Instr* xor_self(Instr* x, Builder& b) {
  return is_static_array(x) && x->operand(0) == x->operand(1) ? zero_like(x, b) : nullptr;
}

Instr* bits_neutral(Instr* x, Builder&) {
  if (!x->is(Opcode::and_) && !x->is(Opcode::or_) && !x->is(Opcode::xor_)) return nullptr;
  for (size_t i : {size_t{1}, size_t{0}}) {
    Instr *constant = x->operand(i), *rest = x->operand(1 - i);
    const bool ones = is_all_ones(constant), zero = is_zero_bits(constant);
    if (!ones && !zero) continue;
    if (x->is(Opcode::and_)) return ones ? rest : constant;
    if (x->is(Opcode::or_)) return zero ? rest : constant;
    if (zero) return rest;
  }
  return nullptr;
}

Instr* shift_zero(Instr* x, Builder&) {
  switch (x->opcode()) {
    case Opcode::shift_left:
    case Opcode::shift_right_arithmetic:
    case Opcode::shift_right_logical:
      return is_zero_bits(x->operand(1)) ? x->operand(0) : nullptr;
    default:
      return nullptr;
  }
}

Instr* extreme_bound(Instr* x, Builder&) {
  const bool maximum = x->is(Opcode::maximum);
  if ((!maximum && !x->is(Opcode::minimum)) || !x->shape().is_array()) return nullptr;
  for (size_t i : {size_t{1}, size_t{0}})
    if (is_extreme(x->operand(i), maximum)) return x->operand(1 - i);
  return nullptr;
}

Instr* constant_right(Instr* x, Builder& b) {
  if (!hlo::is_commutative(x->opcode())) return nullptr;
  Instr *left = x->operand(0), *right = x->operand(1);
  if (!is_constant_like(left) || is_constant_like(right)) return nullptr;
  return b.binary(x->opcode(), right, left);
}

// Exact because only operators that are associative to the last bit are accepted.
Instr* constants_together(Instr* x, Builder& b) {
  const bool extreme = x->is(Opcode::maximum) || x->is(Opcode::minimum);
  if (!hlo::is_commutative(x->opcode()) || !(extreme || is_integer(x) || is_pred(x)))
    return nullptr;
  Instr *inner = x->operand(0), *last = x->operand(1);
  if (inner->opcode() != x->opcode() || !is_constant_like(last)) return nullptr;
  Instr* first = inner->operand(1);
  if (!is_constant_like(first) || is_constant_like(inner->operand(0))) return nullptr;
  return b.binary(x->opcode(), inner->operand(0), b.binary(x->opcode(), first, last));
}

Instr* complex_parts(Instr* x, Builder&) {
  if (x->is(Opcode::real) || x->is(Opcode::imag)) {
    Instr* z = x->operand(0);
    if (z->is(Opcode::complex)) return z->operand(x->is(Opcode::real) ? 0 : 1);
    return x->is(Opcode::real) && is_float(z) ? z : nullptr;
  }
  if (!x->is(Opcode::complex)) return nullptr;
  Instr *re = x->operand(0), *im = x->operand(1);
  if (!re->is(Opcode::real) || !im->is(Opcode::imag)) return nullptr;
  return re->operand(0) == im->operand(0) ? re->operand(0) : nullptr;
}

}  // namespace heddle::opt::rules
