#include "import/assertion.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "tensor/compare.h"

namespace heddle::import {
namespace {

using tensor::Literal;
using tensor::Type;

bool both_nan(double a, double b) { return std::isnan(a) && std::isnan(b); }

// Compares two real components of one floating-point type.
bool agree(const Assertion& assertion, Type type, double got, double want) {
  const bool same = both_nan(got, want) || got == want;
  switch (assertion.kind) {
    case Assertion::Kind::equal:
      return same;
    case Assertion::Kind::almost_equal:
      return same || std::fabs(got - want) <= assertion.tolerance;
    case Assertion::Kind::close:
      break;
  }
  if (!same && (std::isnan(got) || std::isnan(want))) return false;
  const double distance = same ? 0 : tensor::ulp_distance(type, got, want);
  return distance >= static_cast<double>(assertion.least_ulp) &&
         distance <= static_cast<double>(assertion.most_ulp);
}

std::string value_text(const Literal& value, int64_t i) {
  if (tensor::is_complex(value.type())) {
    const std::complex<double> number = value.get_complex(i);
    return fmt::format("({}, {})", number.real(), number.imag());
  }
  if (tensor::is_float(value.type())) return fmt::format("{}", value.get_f64(i));
  if (value.type() == Type::u64) return fmt::format("{}", static_cast<uint64_t>(value.get_s64(i)));
  return fmt::format("{}", value.get_s64(i));
}

bool element_agrees(const Assertion& assertion, const Literal& got, const Literal& want,
                    int64_t i) {
  const Type type = got.type();
  if (tensor::is_complex(type)) {
    const std::complex<double> a = got.get_complex(i), b = want.get_complex(i);
    const Type part = tensor::complex_component(type);
    return agree(assertion, part, a.real(), b.real()) && agree(assertion, part, a.imag(), b.imag());
  }
  if (tensor::is_float(type)) return agree(assertion, type, got.get_f64(i), want.get_f64(i));
  return got.get_s64(i) == want.get_s64(i);
}

}  // namespace

std::string failure_of(const Assertion& assertion, const Literal& got, const Literal& want) {
  if (!got.shape().compatible(want.shape()))
    return fmt::format("{}: got {}, wanted {}", assertion.name, tensor::to_string(got.shape()),
                       tensor::to_string(want.shape()));
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < got.elems(); ++i) {
    if (element_agrees(assertion, got, want, i)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  return fmt::format("{}: {} of {} elements differ; element {} is {}, wanted {}", assertion.name,
                     wrong, got.elems(), first, value_text(got, first), value_text(want, first));
}

}  // namespace heddle::import
