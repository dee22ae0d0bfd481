#include "import/fold_scalar.h"

#include <cmath>

namespace heddle::import {

using hlo::Opcode;

namespace {

int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }

// Square and multiply, modulo 2^64.
std::optional<int64_t> integer_power(int64_t x, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  uint64_t result = 1, factor = static_cast<uint64_t>(x);
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) result *= factor;
    factor *= factor;
  }
  return wrapping(result);
}

}  // namespace

std::optional<int64_t> fold_unary(Opcode opcode, int64_t x, bool is_bool) {
  switch (opcode) {
    case Opcode::abs:
      return x < 0 ? wrapping(-static_cast<uint64_t>(x)) : x;
    case Opcode::negate:
      return wrapping(-static_cast<uint64_t>(x));
    case Opcode::not_:
      return is_bool ? 1 - x : ~x;
    case Opcode::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    default:
      return std::nullopt;
  }
}

std::optional<double> fold_unary(Opcode opcode, double x) {
  switch (opcode) {
    case Opcode::abs:
      return std::abs(x);
    case Opcode::ceil:
      return std::ceil(x);
    case Opcode::cosine:
      return std::cos(x);
    case Opcode::exponential:
      return std::exp(x);
    case Opcode::floor:
      return std::floor(x);
    case Opcode::log:
      return std::log(x);
    case Opcode::negate:
      return -x;
    case Opcode::round_nearest_even:
      return std::nearbyint(x);
    case Opcode::rsqrt:
      return 1 / std::sqrt(x);
    case Opcode::sign:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case Opcode::sine:
      return std::sin(x);
    case Opcode::sqrt:
      return std::sqrt(x);
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> fold_binary(Opcode opcode, int64_t x, int64_t y) {
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  switch (opcode) {
    case Opcode::add:
      return wrapping(ux + uy);
    case Opcode::subtract:
      return wrapping(ux - uy);
    case Opcode::multiply:
      return wrapping(ux * uy);
    case Opcode::divide:
      if (y == 0) return -1;
      return y == -1 ? wrapping(-ux) : x / y;
    case Opcode::remainder:
      if (y == 0) return x;
      return y == -1 ? 0 : x % y;
    case Opcode::maximum:
      return x > y ? x : y;
    case Opcode::minimum:
      return x < y ? x : y;
    case Opcode::and_:
      return x & y;
    case Opcode::or_:
      return x | y;
    case Opcode::xor_:
      return x ^ y;
    case Opcode::power:
      return integer_power(x, y);
    default:
      return std::nullopt;
  }
}

std::optional<double> fold_binary(Opcode opcode, double x, double y) {
  switch (opcode) {
    case Opcode::add:
      return x + y;
    case Opcode::subtract:
      return x - y;
    case Opcode::multiply:
      return x * y;
    case Opcode::divide:
      return x / y;
    case Opcode::remainder:
      return std::fmod(x, y);
    case Opcode::maximum:
      return std::isnan(x) || x > y ? x : y;
    case Opcode::minimum:
      return std::isnan(x) || x < y ? x : y;
    case Opcode::power:
      return std::pow(x, y);
    default:
      return std::nullopt;
  }
}

}  // namespace heddle::import
