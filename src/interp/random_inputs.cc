#include "interp/random_inputs.h"

#include <algorithm>
#include <cmath>

#include "hlo/builder.h"
#include "interp/numbers.h"
#include "interp/random_bits.h"
#include "interp/uses.h"

namespace heddle::interp {
namespace {

constexpr int64_t kUnboundedExtent = 4;  // for a dimension without a known bound

class Stream {
 public:
  explicit Stream(uint64_t seed) : state_(mix(seed)) {}
  uint64_t bits() { return mix(state_++); }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % (static_cast<uint64_t>(high - low) + 1));
  }

 private:
  uint64_t state_;
};

// The largest value of an integer type, at most INT32_MAX.
int64_t largest_of(Type type) {
  const int bits = tensor::type_bits(type) - (tensor::is_signed_integer(type) ? 1 : 0);
  return bits >= 32 ? INT32_MAX : (int64_t{1} << bits) - 1;
}

void fill_indices(Literal& x, const Wants& wants, Stream& stream) {
  const auto components = static_cast<int64_t>(wants.limits.size());
  std::vector<int64_t> values(static_cast<size_t>(x.elems()));
  for (int64_t i = 0; i < x.elems(); ++i) {
    const int64_t limit =
        std::min(wants.limits[static_cast<size_t>(i % components)], largest_of(x.type()));
    if (wants.is_unique) {
      // Row i / components as a mixed-radix number whose digits are the components, the last one
      // fastest.
      int64_t row = i / components;
      for (int64_t k = components - 1; k > i % components; --k)
        row /= wants.limits[static_cast<size_t>(k)] + 1;
      values[static_cast<size_t>(i)] = row % (limit + 1);
    } else {
      values[static_cast<size_t>(i)] = stream.between(0, limit);
    }
  }
  // Sorting all numbers also sorts the rows, whatever their length; unique rows are sorted already.
  if (wants.is_sorted && !wants.is_unique) {
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = std::min(values[i], wants.limits[i % wants.limits.size()]);
  }
  set_values(x, values);
}

void fill_integers(Literal& x, const Wants& wants, Stream& stream) {
  const int64_t high = std::min<int64_t>(largest_of(x.type()), 5);
  const int64_t low = tensor::is_signed_integer(x.type()) ? -high : 0;
  std::vector<int64_t> values(static_cast<size_t>(x.elems()));
  for (int64_t& value : values) {
    value = stream.between(low, high);
    if (wants.nonzero && value == 0) value = high != 0 ? high : -1;
  }
  set_values(x, values);
}

// Symmetric diagonally dominant matrices.
void make_definite(const Literal& x, std::vector<double>& values) {
  const int64_t rank = x.shape().rank();
  if (rank < 2 || x.shape().dim(-1) != x.shape().dim(-2)) return;
  const int64_t n = x.shape().dim(-1);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<int64_t>(i) % (n * n), row = place / n, column = place % n;
    double& value = values[i];
    if (column > row) {
      value /= static_cast<double>(n);
    } else if (column < row) {
      value = values[i - static_cast<size_t>(place) + static_cast<size_t>(column * n + row)];
    } else {
      value = 1 + std::fabs(value);
    }
  }
}

void fill_floats(Literal& x, const Wants& wants, Stream& stream) {
  std::vector<double> values(static_cast<size_t>(x.elems()));
  const tensor::FloatFormat& format = tensor::float_format(x.type());
  for (double& value : values) {
    value = 2 * stream.unit() - 1;
    if (wants.positive || !format.has_sign) value = 0.125 + std::fabs(value);
  }
  if (wants.definite) make_definite(x, values);
  set_values(x, values);
}

void fill_complex(Literal& x, const Wants& wants, Stream& stream) {
  std::vector<double> real(static_cast<size_t>(x.elems()));
  for (double& value : real) value = 2 * stream.unit() - 1;
  if (wants.definite) make_definite(x, real);
  std::vector<Complex> values(real.size());
  for (size_t i = 0; i < real.size(); ++i)
    values[i] = {real[i], wants.definite ? 0 : 2 * stream.unit() - 1};
  set_values(x, values);
}

void bound(Shape& shape) {
  if (shape.is_tuple())
    for (Shape& element : shape.mutable_elements()) bound(element);
  else
    for (int64_t d = 0; d < shape.rank(); ++d)
      shape.set_dim(d, shape.dim(d) < 0 ? kUnboundedExtent : shape.dim(d));
}

Shape sized(const Shape& shape) {
  Shape result = shape.without_layout();
  bound(result);
  return result;
}

Literal leaf(const Shape& shape, const Wants& wants, Stream& stream) {
  Literal x(shape);
  if (!shape.is_array()) return x;
  switch (domain_of(shape.type())) {
    case Domain::complex:
      fill_complex(x, wants, stream);
      return x;
    case Domain::pred:
      for (int64_t i = 0; i < x.elems(); ++i) x.set_s64(i, static_cast<int64_t>(stream.bits() & 1));
      break;
    case Domain::floating:
      fill_floats(x, wants, stream);
      break;
    default:
      if (!wants.limits.empty()) {
        fill_indices(x, wants, stream);
      } else {
        fill_integers(x, wants, stream);
      }
  }
  if (wants.exactly >= 0) {
    for (int64_t i = 0; i < x.elems(); ++i) x.set_s64(i, wants.exactly);
  }
  if (wants.neutral) {
    const double neutral = hlo::neutral_value(*wants.neutral, shape.type()).get_f64(0);
    for (int64_t i = 0; i < x.elems(); ++i) x.set_f64(i, neutral);
  }
  return x;
}

Literal fill(const Shape& shape, const std::vector<Wants>& wants, size_t& next, Stream& stream) {
  if (!shape.is_tuple()) return leaf(shape, wants[next++], stream);
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements())
    elements.push_back(fill(element, wants, next, stream));
  return Literal::tuple(std::move(elements));
}

// A separate stream per argument, which does not depend on the arguments before it.
Stream stream_of(uint64_t seed, int64_t number) {
  return Stream(seed * 1000003 + static_cast<uint64_t>(number));
}

}  // namespace

std::vector<Literal> random_arguments(const hlo::Module& module, uint64_t seed) {
  const std::vector<Wants> wants = wants_of_parameters(module);
  std::vector<Literal> result;
  size_t next = 0;
  for (const hlo::Instr* parameter : module.entry()->parameters()) {
    Stream stream = stream_of(seed, parameter->parameter_number());
    result.push_back(fill(sized(parameter->shape()), wants, next, stream));
  }
  return result;
}

Literal random_floats(const Shape& shape, uint64_t seed, int64_t number) {
  Stream stream = stream_of(seed, number);
  return leaf(shape, {}, stream);
}

}  // namespace heddle::interp
