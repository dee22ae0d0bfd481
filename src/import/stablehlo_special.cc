// CHLO: special functions, computed in f64 for all types: so the error of a formula is negligible
// before the final rounding (except for f64 itself: a few units).
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "import/stablehlo_ops.h"

namespace heddle::import {
namespace {

using hlo::Direction;
using tensor::Type;

// Arithmetic on whole f64 arrays.
struct Math {
  hlo::Builder& b;
  Shape shape;

  Instr* number(double value) const { return b.full(shape, value); }
  Instr* add(Instr* x, Instr* y) const { return b.binary(Opcode::add, x, y); }
  Instr* sub(Instr* x, Instr* y) const { return b.binary(Opcode::subtract, x, y); }
  Instr* mul(Instr* x, Instr* y) const { return b.binary(Opcode::multiply, x, y); }
  Instr* div(Instr* x, Instr* y) const { return b.binary(Opcode::divide, x, y); }
  Instr* log(Instr* x) const { return b.unary(Opcode::log, x); }
  Instr* abs(Instr* x) const { return b.unary(Opcode::abs, x); }
  Instr* less(Instr* x, double y) const { return b.compare(Direction::lt, x, number(y)); }
};

// Applies `function` to the operand as f64, and rounds to the operand's type.
template <typename Function>
void in_f64(ShloOp& op, Function function) {
  Instr* x = op.operand(0);
  const Type type = x->shape().type();
  if (!tensor::is_float(type)) fail("operand 0 is {}", tensor::to_string(x->shape(), false));
  const Math math{op.b, Shape::array(Type::f64, x->shape().extents())};
  op.give(op.b.convert(function(math, op.b.convert(x, Type::f64)), type));
}

// Lanczos' approximation of the gamma function with g = 7 and nine terms.
constexpr double kG = 7;
constexpr double kFirst = 0.99999999999980993227684700473478;
constexpr std::array<double, 8> kLanczos = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};

// Below 1/2 the reflection formula is used: z is -x there, else x - 1.
struct Reflected {
  Instr *below, *z, *t, *log_t;
};
Reflected reflect(const Math& m, Instr* x) {
  Reflected r{};
  r.below = m.less(x, 0.5);
  r.z = m.b.select(r.below, m.b.unary(Opcode::negate, x), m.sub(x, m.number(1)));
  r.t = m.add(r.z, m.number(kG + 0.5));
  r.log_t = m.add(m.number(std::log(kG + 0.5)),
                  m.b.unary(Opcode::log_plus_one, m.div(r.z, m.number(kG + 0.5))));
  return r;
}

Instr* lgamma(const Math& m, Instr* x) {
  const Reflected r = reflect(m, x);
  Instr* sum = m.number(kFirst);
  for (size_t i = 0; i < kLanczos.size(); ++i)
    sum =
        m.add(sum, m.div(m.number(kLanczos[i]), m.add(r.z, m.number(static_cast<double>(i) + 1))));
  Instr* power = m.mul(m.sub(m.add(r.z, m.number(0.5)), m.div(r.t, r.log_t)), r.log_t);
  const double half_log_two_pi = 0.5 * std::log(2 * std::numbers::pi);
  Instr* above = m.add(m.add(power, m.number(half_log_two_pi)), m.log(sum));
  // log |pi / sin(pi x)|, computed from the distance to the nearest integer
  Instr* size = m.abs(x);
  Instr* part = m.sub(size, m.b.unary(Opcode::floor, size));
  part = m.b.binary(Opcode::minimum, part, m.sub(m.number(1), part));
  Instr* sine = m.log(m.b.unary(Opcode::sine, m.mul(m.number(std::numbers::pi), part)));
  Instr* below = m.sub(m.sub(m.number(std::log(std::numbers::pi)), sine), above);
  below = m.b.select(m.b.unary(Opcode::is_finite, sine), below, m.b.unary(Opcode::negate, sine));
  Instr* result = m.b.select(r.below, below, above);
  const double infinity = std::numeric_limits<double>::infinity();
  return m.b.select(m.b.compare(Direction::eq, size, m.number(infinity)), m.number(infinity),
                    result);
}

Instr* digamma(const Math& m, Instr* x) {
  const Reflected r = reflect(m, x);
  Instr *sum = m.number(kFirst), *slope = m.number(0);
  for (size_t i = 0; i < kLanczos.size(); ++i) {
    Instr* at = m.add(r.z, m.number(static_cast<double>(i) + 1));
    Instr* term = m.div(m.number(kLanczos[i]), at);
    sum = m.add(sum, term);
    slope = m.sub(slope, m.div(term, at));
  }
  Instr* above = m.sub(m.add(r.log_t, m.div(slope, sum)), m.div(m.number(kG), r.t));
  // pi / tan(pi x), computed from x minus its nearest integer
  Instr* nearest = m.b.unary(Opcode::floor, m.add(x, m.number(0.5)));
  Instr* angle = m.mul(m.number(std::numbers::pi), m.sub(x, nearest));
  Instr* cotangent = m.div(m.mul(m.number(std::numbers::pi), m.b.unary(Opcode::cosine, angle)),
                           m.b.unary(Opcode::sine, angle));
  Instr* result = m.b.select(r.below, m.sub(above, cotangent), above);
  Instr* pole = m.b.binary(Opcode::and_, m.b.compare(Direction::le, x, m.number(0)),
                           m.b.compare(Direction::eq, x, m.b.unary(Opcode::floor, x)));
  return m.b.select(pole, m.number(std::numeric_limits<double>::quiet_NaN()), result);
}

// Winitzki's initial guess and Newton steps on erf(y) = x, written with erfc for |x| near 1.
Instr* erf_inv(const Math& m, Instr* x) {
  Instr* size = m.abs(x);
  Instr* w = m.b.unary(Opcode::log_plus_one, m.b.unary(Opcode::negate, m.mul(x, x)));
  constexpr double kA = 0.147;
  Instr* u = m.add(m.number(2 / (std::numbers::pi * kA)), m.mul(m.number(0.5), w));
  Instr* inner = m.sub(m.mul(u, u), m.mul(m.number(1 / kA), w));
  Instr* y = m.b.unary(Opcode::sqrt, m.sub(m.b.unary(Opcode::sqrt, inner), u));
  Instr* rest = m.sub(m.number(1), size);  // exact for |x| >= 1/2
  const double slope = std::sqrt(std::numbers::pi) / 2;
  constexpr int kSteps = 4;
  for (int i = 0; i < kSteps; ++i) {
    // (erf(y) - |x|) as (1 - |x|) - erfc(y) if erf is near 1
    Instr* near = m.sub(rest, m.b.unary(Opcode::erfc, y));
    Instr* far = m.sub(m.b.unary(Opcode::erf, y), size);
    Instr* off = m.b.select(m.less(size, 0.5), far, near);
    Instr* step = m.mul(m.mul(off, m.number(slope)), m.b.unary(Opcode::exponential, m.mul(y, y)));
    // Halley: step / (1 + y step)
    y = m.sub(y, m.div(step, m.add(m.number(1), m.mul(y, step))));
  }
  const double infinity = std::numeric_limits<double>::infinity();
  y = m.b.select(m.b.compare(Direction::eq, size, m.number(1)), m.number(infinity), y);
  return m.b.select(m.less(x, 0), m.b.unary(Opcode::negate, y), y);
}

// exp(-|x|) I1(x): the power series, from 30 on the asymptotic series.
Instr* bessel_i1e(const Math& m, Instr* x) {
  constexpr double kFar = 30;
  constexpr int kTerms = 70;
  Instr* size = m.abs(x);
  Instr* near = m.b.binary(Opcode::minimum, size, m.number(kFar));
  Instr* q = m.mul(m.mul(near, near), m.number(0.25));
  Instr* sum = m.number(1);
  for (int k = kTerms; k >= 1; --k)
    sum = m.add(m.number(1), m.mul(sum, m.mul(q, m.number(1.0 / (k * (k + 1.0))))));
  Instr* series = m.mul(m.mul(m.mul(near, m.number(0.5)), sum),
                        m.b.unary(Opcode::exponential, m.b.unary(Opcode::negate, near)));
  // 1 - (4 - 1)/(8x) (1 - (4 - 9)/(16 x) (1 - (4 - 25)/(24 x) (…)))
  Instr* far = m.b.binary(Opcode::maximum, size, m.number(kFar));
  Instr* tail = m.number(1);
  constexpr int kFarTerms = 16;
  for (int k = kFarTerms; k >= 1; --k) {
    const double odd = 2.0 * k - 1;
    tail = m.sub(m.number(1), m.mul(tail, m.div(m.number((4 - odd * odd) / (8.0 * k)), far)));
  }
  Instr* asymptotic =
      m.div(tail, m.b.unary(Opcode::sqrt, m.mul(m.number(2 * std::numbers::pi), far)));
  Instr* result = m.b.select(m.less(size, kFar), series, asymptotic);
  return m.b.select(m.less(x, 0), m.b.unary(Opcode::negate, result), result);
}

// The sum of (q + k)^-s over k = 0, 1, …: the first terms, and the rest by the Euler-Maclaurin
// formula.
Instr* zeta(const Math& m, Instr* s, Instr* q) {
  constexpr int kTerms = 12;
  // B(2j) / (2j)!
  constexpr std::array<double, 8> kBernoulli = {1.0 / 12,
                                                -1.0 / 720,
                                                1.0 / 30240,
                                                -1.0 / 1209600,
                                                1.0 / 47900160,
                                                -691.0 / 1307674368000.0,
                                                1.0 / 74724249600.0,
                                                -3617.0 / 10670622842880000.0};
  const auto power = [&](Instr* x, Instr* y) { return m.b.binary(Opcode::power, x, y); };
  Instr* minus_s = m.b.unary(Opcode::negate, s);
  Instr* sum = m.number(0);
  for (int k = 0; k < kTerms; ++k)
    sum = m.add(sum, power(k == 0 ? q : m.add(q, m.number(k)), minus_s));
  Instr* a = m.add(q, m.number(kTerms));
  Instr* last = power(a, minus_s);
  sum = m.add(sum, m.div(m.mul(last, a), m.sub(s, m.number(1))));
  sum = m.add(sum, m.mul(last, m.number(0.5)));
  Instr* factor = m.div(m.mul(s, last), a);  // s (s+1) … a^(-s-2j+1)
  for (size_t j = 0; j < kBernoulli.size(); ++j) {
    sum = m.add(sum, m.mul(factor, m.number(kBernoulli[j])));
    const auto at = static_cast<double>(2 * j + 1);
    factor = m.div(m.mul(factor, m.mul(m.add(s, m.number(at)), m.add(s, m.number(at + 1)))),
                   m.mul(a, a));
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Instr* integer = m.b.compare(Direction::eq, q, m.b.unary(Opcode::floor, q));
  Instr* not_above = m.b.compare(Direction::le, q, m.number(0));
  sum = m.b.select(m.b.binary(Opcode::and_, not_above, integer), m.number(infinity), sum);
  sum = m.b.select(m.b.compare(Direction::eq, s, m.number(1)), m.number(infinity), sum);
  return m.b.select(m.less(s, 1), m.number(nan), sum);
}

// For two operands, as f64.
template <typename Function>
void two_in_f64(ShloOp& op, Function function) {
  const Type type = op.operand(0)->shape().type();
  if (!tensor::is_float(type)) fail("operand 0 is {}", tensor::type_name(type));
  const Math math{op.b, Shape::array(Type::f64, op.operand(0)->shape().extents())};
  op.give(op.b.convert(function(math, op.b.convert(op.operand(0), Type::f64),
                                op.b.convert(op.operand(1), Type::f64)),
                       type));
}

void zeta_op(ShloOp& op) { two_in_f64(op, zeta); }

// (-1)^(n+1) n! zeta(n+1, x); for n = 0 digamma(x).
void polygamma(ShloOp& op) {
  two_in_f64(op, [](const Math& m, Instr* n, Instr* x) {
    Instr* next = m.add(n, m.number(1));
    Instr* even =
        m.b.compare(Direction::eq, m.b.binary(Opcode::remainder, n, m.number(2)), m.number(0));
    Instr* size = m.mul(m.b.unary(Opcode::exponential, lgamma(m, next)), zeta(m, next, x));
    Instr* value = m.b.select(even, m.b.unary(Opcode::negate, size), size);
    return m.b.select(m.b.compare(Direction::eq, n, m.number(0)), digamma(m, x), value);
  });
}

// The next representable number from operand 0 towards operand 1.
void next_after(ShloOp& op) {
  hlo::Builder& b = op.b;
  Instr *x = op.operand(0), *y = op.operand(1);
  const Type type = x->shape().type();
  const int bits = tensor::type_bits(type);
  if (!tensor::is_float(type) || bits < 16) fail("operand 0 is {}", tensor::type_name(type));
  const Type integer = bits == 16 ? Type::s16 : bits == 32 ? Type::s32 : Type::s64;
  const Shape shape = Shape::array(integer, x->shape().extents());
  const auto number = [&](int64_t value) {
    Literal literal(Shape::scalar(integer));
    literal.set_s64(0, value);
    return b.broadcast(b.constant(std::move(literal)), shape.extents(), {});
  };
  const int64_t sign_bit =
      bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1));
  Instr *xi = b.bitcast_convert(x, shape), *yi = b.bitcast_convert(y, shape);
  Instr* zero = b.full(x->shape(), 0);
  // The magnitude grows if y is further from zero than x, on the same side.
  Instr* grows = b.select(b.compare(Direction::gt, x, zero), b.compare(Direction::gt, y, x),
                          b.compare(Direction::lt, y, x));
  Instr* moved = b.binary(Opcode::add, xi, b.select(grows, number(1), number(-1)));
  Instr* smallest = b.binary(Opcode::or_, b.binary(Opcode::and_, yi, number(sign_bit)), number(1));
  Instr* result = b.select(b.compare(Direction::eq, x, zero), smallest, moved);
  result = b.select(b.compare(Direction::eq, x, y), yi, result);
  Instr* value = b.bitcast_convert(result, x->shape());
  Instr* nan =
      b.binary(Opcode::or_, b.compare(Direction::ne, x, x), b.compare(Direction::ne, y, y));
  op.give(b.select(nan, b.binary(Opcode::add, x, y), value));
}

template <auto kFunction>
void special(ShloOp& op) {
  in_f64(op, kFunction);
}

constexpr ShloEntry kOps[] = {
    {"chlo.lgamma", special<lgamma>, 1, 1},   {"chlo.digamma", special<digamma>, 1, 1},
    {"chlo.erf_inv", special<erf_inv>, 1, 1}, {"chlo.bessel_i1e", special<bessel_i1e>, 1, 1},
    {"chlo.next_after", next_after, 2, 2},    {"chlo.zeta", zeta_op, 2, 2},
    {"chlo.polygamma", polygamma, 2, 2},
};

}  // namespace

std::span<const ShloEntry> shlo_special_ops() { return kOps; }

}  // namespace heddle::import
