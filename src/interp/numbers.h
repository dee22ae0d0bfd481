// Representation of elements during computation: f64 for every float, 64 bits for integers, c128
// for complex. Reading an element into a Cell is exact; writing it rounds or wraps to the type.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"

namespace heddle::interp {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;
using Complex = std::complex<double>;

// How a type's elements are computed, and which member of Cell holds them.
enum class Domain : uint8_t {
  pred,         // u: 0 or 1
  is_signed,    // s: in the range of the type
  is_unsigned,  // u: likewise
  floating,     // f: a number of the type
  complex,      // z
};
Domain domain_of(Type type);  // array types only

union Cell {
  struct Pair {
    double re, im;
  };
  double f;
  int64_t s;
  uint64_t u;
  Pair z;
};
inline Complex to_complex(Cell cell) { return {cell.z.re, cell.z.im}; }
inline Cell from_complex(Complex value) { return Cell{.z = {value.real(), value.imag()}}; }

// Elements [begin, begin + n) of dense data, as in a Literal.
void load_cells(Type type, const void* data, int64_t begin, int64_t n, Cell* cells);
void store_cells(Type type, void* data, int64_t begin, int64_t n, const Cell* cells);
inline Cell load_cell(const Literal& x, int64_t i) {
  Cell cell;
  load_cells(x.type(), x.data(), i, 1, &cell);
  return cell;
}
// The effect of storing and loading again: rounds, wraps.
void round_cells(Type type, int64_t n, Cell* cells);
double round_to(Type type, double value);

// An element's encoding, masked to its width; not for complex types. A pred is a byte: nonzero is
// true.
int bitcast_bits(Type type);
uint64_t cell_to_bits(Type type, Cell cell);
Cell cell_from_bits(Type type, uint64_t bits);

// All elements as T: double (from any real type), int64_t (integers and pred; u64 bit for bit),
// float (rounded) or Complex (from any type).
template <typename T>
std::vector<T> values_as(const Literal& x);
// The inverse, rounding; T double, int64_t or Complex, and a type of that domain.
template <typename T>
void set_values(Literal& x, const std::vector<T>& values);

// An index operand's element, with a u64 beyond int64 taken as the largest int64.
int64_t index_at(const Literal& x, int64_t i);

// An s64 or u64 as a double that rounds to any narrower format exactly as the integer does (round
// to odd).
double odd_from_s64(int64_t value);
double odd_from_u64(uint64_t value);

// f16, bf16, f32 -> f64; c64 -> c128; others unchanged.
Type wide_type(Type type);
// The shape without dynamic dimensions (taken at their bound), symbols and layouts.
// Error: an unbounded dimension.
Result<Shape> static_shape(const Shape& shape);
Shape wide_shape(const Shape& shape);
// Converts float and complex leaves to the types of `shape`, which has equal extents.
Result<Literal> convert_floats(const Literal& x, const Shape& shape);

}  // namespace heddle::interp
