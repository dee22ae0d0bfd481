#include "interp/scalar_ops.h"

#include <bit>
#include <cmath>

namespace heddle::interp {
namespace {

using hlo::Direction;
using hlo::Opcode;

double logistic(double x) {
  // Chooses the form whose exponential cannot overflow.
  if (x >= 0) return 1 / (1 + std::exp(-x));
  double e = std::exp(x);
  return e / (1 + e);
}

double sign(double x) {
  if (std::isnan(x) || x == 0) return x;
  return x < 0 ? -1 : 1;
}

// IEEE 754-2019 maximum and minimum: NaN wins, -0 < +0.
double maximum(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

double minimum(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

uint64_t power_of(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

int64_t signed_power(int64_t base, int64_t exponent, int) {
  if (exponent >= 0)
    return static_cast<int64_t>(
        power_of(static_cast<uint64_t>(base), static_cast<uint64_t>(exponent)));
  if (base == 1) return 1;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  return 0;
}

uint64_t low_bits(uint64_t x, int bits) { return bits == 64 ? x : x & ((uint64_t{1} << bits) - 1); }
int64_t as_signed(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t as_unsigned(int64_t x) { return static_cast<uint64_t>(x); }

// A shift amount outside [0, bits), including negative ones, shifts all bits out.
bool beyond(int64_t amount, int bits) { return amount < 0 || amount >= bits; }

Complex complex_sign(Complex z) {
  if (std::isnan(z.real()) || std::isnan(z.imag())) return {NAN, NAN};
  double size = std::abs(z);
  return size == 0 ? z : z / size;
}

Complex complex_expm1(Complex z) {
  // e^a cos b - 1 without cancellation: expm1(a) cos b - 2 sin^2(b / 2).
  double a = z.real(), b = z.imag(), s = std::sin(b / 2);
  return {std::expm1(a) * std::cos(b) - 2 * s * s, b == 0 ? b : std::exp(a) * std::sin(b)};
}

Complex complex_log1p(Complex z) {
  double x = z.real(), y = z.imag();
  if (std::abs(x) > 0.5 || std::abs(y) > 0.5) return std::log(Complex(1 + x, y));
  return {0.5 * std::log1p(x * (x + 2) + y * y), std::atan2(y, x + 1)};
}

Complex complex_power(Complex a, Complex b) {
  if (b == Complex(0)) return 1;
  return std::pow(a, b);
}

Complex complex_atan2(Complex y, Complex x) {
  const Complex i(0, 1);
  return -i * std::log((x + i * y) / std::sqrt(x * x + y * y));
}

bool is_nan(Complex z) { return std::isnan(z.real()) || std::isnan(z.imag()); }

// By the real part, then by the imaginary one; NaN wins.
Complex complex_maximum(Complex a, Complex b, bool largest) {
  if (is_nan(a) || is_nan(b)) return is_nan(a) ? a : b;
  bool a_below = a.real() != b.real() ? a.real() < b.real() : a.imag() < b.imag();
  return a_below == largest ? b : a;
}

}  // namespace

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](double x) -> double { return expression; }
FloatUnary float_unary(Opcode opcode) {
  switch (opcode) {
    CASE(abs, std::fabs(x));
    CASE(acos, std::acos(x));
    CASE(acosh, std::acosh(x));
    CASE(asin, std::asin(x));
    CASE(asinh, std::asinh(x));
    CASE(atanh, std::atanh(x));
    CASE(cbrt, std::cbrt(x));
    CASE(ceil, std::ceil(x));
    CASE(cosine, std::cos(x));
    CASE(cosh, std::cosh(x));
    CASE(erf, std::erf(x));
    CASE(erfc, std::erfc(x));
    CASE(exponential, std::exp(x));
    CASE(exponential_minus_one, std::expm1(x));
    CASE(floor, std::floor(x));
    CASE(imag, 0.0);
    CASE(log, std::log(x));
    CASE(log_plus_one, std::log1p(x));
    CASE(logistic, logistic(x));
    CASE(negate, -x);
    CASE(real, x);
    CASE(round_nearest_afz, std::round(x));
    CASE(round_nearest_even, std::rint(x));
    CASE(rsqrt, 1 / std::sqrt(x));
    CASE(sign, sign(x));
    CASE(sine, std::sin(x));
    CASE(sinh, std::sinh(x));
    CASE(sqrt, std::sqrt(x));
    CASE(tan, std::tan(x));
    CASE(tanh, std::tanh(x));
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](double a, double b) -> double { return expression; }
FloatBinary float_binary(Opcode opcode) {
  switch (opcode) {
    CASE(add, a + b);
    CASE(atan2, std::atan2(a, b));
    CASE(divide, a / b);
    CASE(maximum, maximum(a, b));
    CASE(minimum, minimum(a, b));
    CASE(multiply, (a * b));
    CASE(power, std::pow(a, b));
    CASE(remainder, std::fmod(a, b));
    CASE(subtract, a - b);
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](int64_t x, int bits) -> int64_t { return expression; }
SignedUnary signed_unary(Opcode opcode) {
  switch (opcode) {
    CASE(abs, x < 0 ? as_signed(-as_unsigned(x)) : x);
    CASE(negate, as_signed(-as_unsigned(x)));
    CASE(not_, ~x);
    CASE(sign, (x > 0) - (x < 0));
    CASE(popcnt, std::popcount(low_bits(as_unsigned(x), bits)));
    CASE(count_leading_zeros, std::countl_zero(low_bits(as_unsigned(x), bits)) - (64 - bits));
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](int64_t a, int64_t b, int bits) -> int64_t { return expression; }
SignedBinary signed_binary(Opcode opcode) {
  switch (opcode) {
    CASE(add, as_signed(as_unsigned(a) + as_unsigned(b)));
    CASE(subtract, as_signed(as_unsigned(a) - as_unsigned(b)));
    CASE(multiply, as_signed(as_unsigned(a) * as_unsigned(b)));
    // Division by -1 is negation, which wraps where INT64_MIN / -1 would trap.
    CASE(divide, b == 0 ? -1 : b == -1 ? as_signed(-as_unsigned(a)) : a / b);
    CASE(remainder, b == 0 ? a : b == -1 ? 0 : a % b);
    CASE(maximum, a > b ? a : b);
    CASE(minimum, a < b ? a : b);
    CASE(power, signed_power(a, b, bits));
    CASE(and_, (a & b));
    CASE(or_, a | b);
    CASE(xor_, a ^ b);
    CASE(shift_left, beyond(b, bits) ? 0 : as_signed(as_unsigned(a) << b));
    CASE(shift_right_arithmetic, beyond(b, bits) ? (a < 0 ? -1 : 0) : a >> b);
    CASE(shift_right_logical, beyond(b, bits) ? 0 : as_signed(low_bits(as_unsigned(a), bits) >> b));
    CASE(mulhi, static_cast<int64_t>(static_cast<__int128>(a) * b >> bits));
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](uint64_t x, int bits) -> uint64_t { return expression; }
UnsignedUnary unsigned_unary(Opcode opcode) {
  switch (opcode) {
    CASE(abs, x);
    CASE(negate, -x);
    CASE(not_, ~x);
    CASE(sign, x != 0);
    CASE(popcnt, static_cast<uint64_t>(std::popcount(x)));
    CASE(count_leading_zeros, static_cast<uint64_t>(std::countl_zero(x) - (64 - bits)));
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](uint64_t a, uint64_t b, int bits) -> uint64_t { return expression; }
UnsignedBinary unsigned_binary(Opcode opcode) {
  switch (opcode) {
    CASE(add, a + b);
    CASE(subtract, a - b);
    CASE(multiply, (a * b));
    CASE(divide, b == 0 ? ~uint64_t{0} : a / b);
    CASE(remainder, b == 0 ? a : a % b);
    CASE(maximum, a > b ? a : b);
    CASE(minimum, a < b ? a : b);
    CASE(power, power_of(a, b));
    CASE(and_, (a & b));
    CASE(or_, a | b);
    CASE(xor_, a ^ b);
    CASE(shift_left, b >= static_cast<uint64_t>(bits) ? 0 : a << b);
    // The sign of an unsigned type is its top bit here.
    CASE(shift_right_arithmetic,
         as_unsigned(as_signed(a << (64 - bits)) >> (64 - bits) >>
                     (b >= static_cast<uint64_t>(bits) ? bits - 1 : static_cast<int>(b))));
    CASE(shift_right_logical, b >= static_cast<uint64_t>(bits) ? 0 : a >> b);
    CASE(mulhi, static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> bits));
    default:
      return nullptr;
  }
}

UnsignedBinary pred_binary(Opcode opcode) {
  switch (opcode) {
    CASE(add, a | b);
    CASE(maximum, a | b);
    CASE(or_, a | b);
    CASE(multiply, (a & b));
    CASE(minimum, (a & b));
    CASE(and_, (a & b));
    CASE(xor_, a ^ b);
    CASE(subtract, a ^ b);
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](Complex z) -> Complex { return expression; }
ComplexUnary complex_unary(Opcode opcode) {
  switch (opcode) {
    CASE(acos, std::acos(z));
    CASE(acosh, std::acosh(z));
    CASE(asin, std::asin(z));
    CASE(asinh, std::asinh(z));
    CASE(atanh, std::atanh(z));
    CASE(cbrt, complex_power(z, 1.0 / 3));
    CASE(cosine, std::cos(z));
    CASE(cosh, std::cosh(z));
    CASE(exponential, std::exp(z));
    CASE(exponential_minus_one, complex_expm1(z));
    CASE(log, std::log(z));
    CASE(log_plus_one, complex_log1p(z));
    CASE(logistic, 1.0 / (1.0 + std::exp(-z)));
    CASE(negate, -z);
    CASE(rsqrt, 1.0 / std::sqrt(z));
    CASE(sign, complex_sign(z));
    CASE(sine, std::sin(z));
    CASE(sinh, std::sinh(z));
    CASE(sqrt, std::sqrt(z));
    CASE(tan, std::tan(z));
    CASE(tanh, std::tanh(z));
    default:
      return nullptr;
  }
}
#undef CASE

#define CASE(opcode, expression) \
  case Opcode::opcode:           \
    return [](Complex a, Complex b) -> Complex { return expression; }
ComplexBinary complex_binary(Opcode opcode) {
  switch (opcode) {
    CASE(add, a + b);
    CASE(atan2, complex_atan2(a, b));
    CASE(divide, a / b);
    CASE(maximum, complex_maximum(a, b, true));
    CASE(minimum, complex_maximum(a, b, false));
    CASE(multiply, (a * b));
    CASE(power, complex_power(a, b));
    CASE(subtract, a - b);
    default:
      return nullptr;
  }
}
#undef CASE

namespace {

// The total order is by sign and magnitude: negative numbers are reversed.
int64_t order_key(double x) {
  auto bits = std::bit_cast<int64_t>(x);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

template <auto Value>
CellTest test_of(Direction direction) {
  switch (direction) {
    case Direction::eq:
      return [](Cell a, Cell b) { return Value(a) == Value(b); };
    case Direction::ne:
      return [](Cell a, Cell b) { return Value(a) != Value(b); };
    case Direction::ge:
      return [](Cell a, Cell b) { return Value(a) >= Value(b); };
    case Direction::gt:
      return [](Cell a, Cell b) { return Value(a) > Value(b); };
    case Direction::le:
      return [](Cell a, Cell b) { return Value(a) <= Value(b); };
    case Direction::lt:
      return [](Cell a, Cell b) { return Value(a) < Value(b); };
  }
  return nullptr;
}

}  // namespace

CellTest comparison(Domain domain, Direction direction, bool total_order) {
  switch (domain) {
    case Domain::pred:
    case Domain::is_unsigned:
      return test_of<[](Cell c) { return c.u; }>(direction);
    case Domain::is_signed:
      return test_of<[](Cell c) { return c.s; }>(direction);
    case Domain::floating:
      return total_order ? test_of<[](Cell c) { return order_key(c.f); }>(direction)
                         : test_of<[](Cell c) { return c.f; }>(direction);
    case Domain::complex:
      if (direction == Direction::eq)
        return [](Cell a, Cell b) { return to_complex(a) == to_complex(b); };
      if (direction == Direction::ne)
        return [](Cell a, Cell b) { return to_complex(a) != to_complex(b); };
      return nullptr;
  }
  return nullptr;
}

uint64_t reduce_precision(Type type, uint64_t bits, int64_t exponent_bits, int64_t mantissa_bits) {
  const tensor::FloatFormat& format = tensor::float_format(type);
  if (!format.has_sign || !format.has_zero) return bits;
  const int mantissa = format.mantissa_bits;
  const uint64_t sign = bits & (uint64_t{1} << (format.exponent_bits + mantissa));
  const double infinity = sign ? -INFINITY : INFINITY;
  double value = tensor::float_from_bits(type, bits);
  if (std::isnan(value)) return mantissa_bits > 0 ? bits : tensor::float_to_bits(type, infinity);
  if (std::isinf(value)) return bits;
  uint64_t magnitude = bits ^ sign;
  if (mantissa_bits < mantissa) {
    // To nearest, ties to even: a carry out of the mantissa raises the exponent as it should.
    int drop = mantissa - static_cast<int>(mantissa_bits);
    uint64_t last = uint64_t{1} << drop;
    magnitude += (last >> 1) - 1 + ((magnitude & last) != 0);
    magnitude &= ~(last - 1);
  }
  auto exponent = static_cast<int64_t>(magnitude >> mantissa);  // biased
  if (exponent_bits < format.exponent_bits) {
    int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
    if (exponent > format.bias + bias) return tensor::float_to_bits(type, infinity);
    if (exponent <= format.bias - bias) return format.has_negative_zero ? sign : 0;
  }
  return sign | magnitude;
}

int64_t float_to_signed(double value, int bits) {
  if (std::isnan(value)) return 0;
  double limit = std::ldexp(1.0, bits - 1);
  if (value >= limit) return as_signed((uint64_t{1} << (bits - 1)) - 1);
  if (value < -limit) return as_signed(~uint64_t{0} << (bits - 1));
  return static_cast<int64_t>(value);
}

uint64_t float_to_unsigned(double value, int bits) {
  if (std::isnan(value) || value <= 0) return 0;
  if (value >= std::ldexp(1.0, bits)) return low_bits(~uint64_t{0}, bits);
  return static_cast<uint64_t>(value);
}

}  // namespace heddle::interp
