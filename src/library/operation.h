// Operation: a request to a vendor library, as data and as text. All values are f32; arrays are
// described by strides in elements, so that layouts and transposes are not special cases.
//
//   product      C[b,m,n] = sum over k of A[b,m,k] B[b,k,n]
//   convolution  C[i,o,...] = sum over a group's input features and the kernel's places of A B
//
// optionally followed by + bias[n] (per column or output feature). Activations are not fused:
// oneDNN's relu turns NaN into zero, ours does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/decision.h"
#include "base/error.h"

namespace heddle::library {

using Ints = std::vector<int64_t>;

struct Operation {
  enum class Kind : uint8_t { product, convolution };
  Kind kind = Kind::product;
  // Product.
  int64_t batch = 1, m = 1, n = 1, k = 1;
  // Convolution: total features, not per group; one entry per spatial dimension (1 to 3).
  int64_t images = 1, groups = 1, in = 1, out = 1;
  Ints input, kernel, output, stride, dilation, low, high;  // low, high: padding, not negative
  // Strides in elements. Product: a [batch, m, k], b [batch, k, n], c [batch, m, n]; 0 repeats.
  // Convolution: a [image, feature, spatial...], b [out, in of a group, spatial...], c as a.
  Ints a, b, c;
  bool bias = false;

  double flops() const;
  bool operator==(const Operation&) const = default;
};

// "convolution images=1 groups=1 in=64 ... bias=1"; parse is the inverse, and check()s.
std::string to_string(const Operation& operation);
Result<Operation> parse_operation(std::string_view text);
// Checks that sizes are positive, lists match the rank, a convolution's sizes are consistent, and
// every result element is written once. Error (user).
Status check(const Operation& operation);

// Elements from an array's first to past its last: the least size of its memory. INT64_MAX if that
// overflows.
struct Spans {
  int64_t a = 0, b = 0, bias = 0, c = 0;
};
Spans spans(const Operation& operation);

// An independent part of an operation, and its start in each array, in elements.
struct Part {
  Operation operation;
  int64_t a = 0, b = 0, bias = 0, c = 0;
};
// Number of parts that pay off on a device with so many cores; depends on the shape alone, so that
// programs and their results do not depend on the machine that runs them.
int64_t part_count(const Operation& operation, int cores);
// About `count` parts (at least one) that together compute the operation: split by batches or
// images first, then rows, then columns.
std::vector<Part> split(const Operation& operation, int64_t count);

// The key of tuning records: everything except the bias.
std::string key_of(const Operation& operation, const std::string& library);

}  // namespace heddle::library
