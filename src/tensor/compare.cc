#include "tensor/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace heddle::tensor {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Difference {
  double error = 0;  // absolute
  double ulp = 0;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Difference float_difference(Type type, double got, double want) {
  if (same(got, want)) return {};
  Difference result{std::abs(got - want), ulp_distance(type, got, want)};
  if (!std::isfinite(got) || !std::isfinite(want)) result.error = kInfinity;
  return result;
}

Difference integer_difference(const Literal& got, const Literal& want, int64_t i) {
  bool wide = want.type() == Type::u64;
  auto value = [wide](const Literal& literal, int64_t at) {
    return wide ? static_cast<__int128>(literal.get_bits(at))
                : static_cast<__int128>(literal.get_s64(at));
  };
  __int128 difference = value(got, i) - value(want, i);
  auto distance = static_cast<double>(difference < 0 ? -difference : difference);
  return {distance, distance};
}

Difference complex_difference(Type type, std::complex<double> got, std::complex<double> want) {
  Type part = complex_component(type);
  Difference re = float_difference(part, got.real(), want.real());
  Difference im = float_difference(part, got.imag(), want.imag());
  return {std::hypot(re.error, im.error), std::max(re.ulp, im.ulp)};
}

double magnitude(const Literal& literal, int64_t i) {
  return is_complex(literal.type()) ? std::abs(literal.get_complex(i))
                                    : std::abs(literal.get_f64(i));
}

Difference difference_at(const Literal& got, const Literal& want, int64_t i) {
  Type type = want.type();
  if (is_complex(type)) return complex_difference(type, got.get_complex(i), want.get_complex(i));
  if (is_float(type)) return float_difference(type, got.get_f64(i), want.get_f64(i));
  return integer_difference(got, want, i);
}

}  // namespace

Tolerance derived_tolerance(Type type, int64_t reduction_length, Type accumulator) {
  if (is_complex(type)) type = complex_component(type);
  if (is_complex(accumulator)) accumulator = complex_component(accumulator);
  if (!is_float(type) || !is_float(accumulator)) return {};
  const FloatFormat& format = float_format(type);
  auto extra = static_cast<double>(std::max<int64_t>(reduction_length, 1) - 1);
  double growth = 2 * std::min(extra, 4 * std::sqrt(extra));
  double reduced = growth * float_format(accumulator).unit_roundoff;
  Tolerance tolerance;
  tolerance.relative = 4 * format.unit_roundoff + reduced;
  // Below the smallest normal number the spacing of values no longer shrinks.
  tolerance.absolute = tolerance.relative * std::ldexp(1.0, 1 - format.bias);
  tolerance.relative_to_max = reduced;
  return tolerance;
}

Tolerance derived_tolerance(Type type, int64_t reduction_length) {
  return derived_tolerance(type, reduction_length, type);
}

double ulp_distance(Type type, double a, double b) {
  bool a_nan = std::isnan(a), b_nan = std::isnan(b);
  if (a_nan || b_nan) return a_nan == b_nan ? 0 : kInfinity;
  const FloatFormat& format = float_format(type);
  // Sign and magnitude as one integer scale on which both zeros are 0.
  auto position = [&](double value) {
    uint64_t bits = float_to_bits(type, value);
    if (!format.has_sign) return static_cast<__int128>(bits);
    uint64_t sign = uint64_t{1} << (format.exponent_bits + format.mantissa_bits);
    auto line = static_cast<__int128>(bits & (sign - 1));
    return bits & sign ? -line : line;
  };
  __int128 distance = position(a) - position(b);
  return static_cast<double>(distance < 0 ? -distance : distance);
}

Comparison compare(const Literal& got, const Literal& want, const Tolerance& tolerance) {
  HEDDLE_CHECK(got.shape().compatible(want.shape()) && want.shape().is_array(), "{} against {}",
               to_string(got.shape()), to_string(want.shape()));
  Comparison result;
  int64_t elems = want.elems();
  for (int64_t i = 0; i < elems; ++i) {
    double value = magnitude(want, i);
    if (std::isfinite(value)) result.max_want = std::max(result.max_want, value);
  }
  double floor = tolerance.absolute;
  if (tolerance.relative_to_max > 0) floor += tolerance.relative_to_max * result.max_want;
  bool worst_is_mismatch = false;
  for (int64_t i = 0; i < elems; ++i) {
    Difference difference = difference_at(got, want, i);
    if (difference.error == 0) continue;
    double allowed = floor;
    if (tolerance.relative > 0) allowed += tolerance.relative * magnitude(want, i);
    // An infinity or a NaN on one side only is never within a tolerance.
    bool mismatch = !(difference.error <= allowed) || std::isinf(difference.error);
    result.mismatches += mismatch;
    result.worst_ulp = std::max(result.worst_ulp, difference.ulp);
    bool worse = result.worst_index < 0 || (mismatch && !worst_is_mismatch) ||
                 (mismatch == worst_is_mismatch && difference.error > result.worst_error);
    if (!worse) continue;
    worst_is_mismatch = mismatch;
    result.worst_index = i;
    result.worst_error = difference.error;
    bool complex = is_complex(want.type());
    result.worst_got = complex ? magnitude(got, i) : got.get_f64(i);
    result.worst_want = complex ? magnitude(want, i) : want.get_f64(i);
  }
  result.equal = result.mismatches == 0;
  return result;
}

std::string Comparison::describe() const {
  if (worst_index < 0) return "equal";
  return fmt::format(
      "{}; worst at element {}: got {}, want {}, error {:.3g} (largest value {:.3g}), at most "
      "{:.0f} "
      "ulp",
      equal ? std::string("within tolerance") : fmt::format("{} elements differ", mismatches),
      worst_index, worst_got, worst_want, worst_error, max_want, worst_ulp);
}

}  // namespace heddle::tensor
