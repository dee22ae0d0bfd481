#include "interp/disturb.h"

namespace heddle::interp {
namespace {

using tensor::Literal;
using tensor::Type;

// splitmix64 of a counter, as a number in [-1, 1).
double random_at(uint64_t seed, uint64_t counter) {
  uint64_t z = seed + counter * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return static_cast<double>(static_cast<int64_t>(z)) * 0x1p-63;
}

}  // namespace

void disturb(Literal& value, double amount, uint64_t seed, uint64_t& counter) {
  if (amount <= 0) return;
  for (Literal& element : value.mutable_elements()) disturb(element, amount, seed, counter);
  if (!value.shape().is_array()) return;
  const auto moved = [&](double x) { return x + x * amount * random_at(seed, counter++); };
  const Type type = value.type();
  if (type == Type::f32) {
    for (float& x : value.mutable_values<float>()) x = static_cast<float>(moved(x));
  } else if (type == Type::f64) {
    for (double& x : value.mutable_values<double>()) x = moved(x);
  } else if (tensor::is_complex(type)) {
    for (int64_t i = 0; i < value.elems(); ++i) {
      const std::complex<double> x = value.get_complex(i);
      const double real = moved(x.real());
      value.set_complex(i, {real, moved(x.imag())});
    }
  } else if (tensor::is_float(type)) {
    for (int64_t i = 0; i < value.elems(); ++i) value.set_f64(i, moved(value.get_f64(i)));
  }
}

}  // namespace heddle::interp
