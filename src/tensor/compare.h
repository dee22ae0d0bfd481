// Comparison of results: bit for bit, by ulp, or by a tolerance derived from type and reduction
// length (docs/numerics.md). NaN equals NaN.
#pragma once

#include <optional>
#include <string>

#include "tensor/literal.h"

namespace heddle::tensor {

struct Tolerance {
  double relative = 0, absolute = 0;  // |a - b| <= absolute + relative * |b|
  // Allowed error relative to the largest |b| of the output; 0: not used.
  double relative_to_max = 0;
};

// `reduction_length`: n, the number of roundings that may accumulate in one element (1 for
// elementwise). With u the unit roundoff of `type`, v that of the accumulator (`type` if none is
// given) and
//   g = 2 min(n - 1, 4 sqrt(n - 1))
// an element may be off by (4 u + g v) |b| + g v max|b| (+ the same of the smallest normal): four
// roundings of a fused chain; both sides round n - 1 times, which adds up to at most n - 1 units
// and, roundings being independent, hardly ever to more than 4 sqrt(n - 1) (Higham and Mary, A new
// approach to probabilistic rounding error analysis, 2019); max|b| because terms may cancel.
// Integers and pred: zero.
Tolerance derived_tolerance(Type type, int64_t reduction_length);
Tolerance derived_tolerance(Type type, int64_t reduction_length, Type accumulator);

struct Comparison {
  bool equal = true;
  int64_t mismatches = 0;  // elements beyond tolerance
  // The largest absolute error, among the mismatches if there are any (complex: magnitudes).
  int64_t worst_index = -1;  // row-major; -1 if nothing differs
  double worst_got = 0, worst_want = 0, worst_error = 0;
  double worst_ulp = 0;          // the largest over all elements, in units of the last place
  double max_want = 0;           // max |b|, finite elements
  std::string describe() const;  // one line
};

// Shapes must be compatible and not tuples. With a zero tolerance only -0 and +0, and NaNs, may
// differ in bits.
Comparison compare(const Literal& got, const Literal& want, const Tolerance& tolerance);
// Distance in representable numbers between two values of a float type; 0 for NaN and NaN.
double ulp_distance(Type type, double a, double b);

}  // namespace heddle::tensor
