// Shared by dot, ragged-dot and convolution: the type in which products are accumulated.
#pragma once

#include "interp/numbers.h"
#include "interp/walk.h"

namespace heddle::interp {

enum class Accumulator : uint8_t { f32, f64, integer, complex };

// Integers only if all three types are; f32 unless a type has more bits than f32.
Accumulator accumulator_of(Type lhs, Type rhs, Type out);

// Calls fn(T{}) with the accumulator's type: float, double, uint64_t (wrapping) or Complex.
template <typename Fn>
auto with_accumulator(Accumulator accumulator, Fn fn) {
  switch (accumulator) {
    case Accumulator::f32:
      return fn(float{});
    case Accumulator::f64:
      return fn(double{});
    case Accumulator::integer:
      return fn(uint64_t{});
    case Accumulator::complex:
      return fn(Complex{});
  }
  HEDDLE_UNREACHABLE();
}

// The array's values with its dimensions permuted to the given order (all of them).
template <typename T>
std::vector<T> values_in_order(const Literal& x, const Ints& order);
// The inverse: `values` are in the order `order` of `out`'s dimensions; rounded once.
template <typename T>
void put_in_order(Literal& out, const Ints& order, const std::vector<T>& values);

// out[j] += a * b[j]
template <typename T>
void add_product(T a, const T* b, int64_t n, T* out) {
  for (int64_t j = 0; j < n; ++j) out[j] += a * b[j];
}

}  // namespace heddle::interp
