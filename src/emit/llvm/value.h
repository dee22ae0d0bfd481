// Val: the value of a kernel expression at one place of the emitted code.
#pragma once

#include <llvm/IR/Value.h>

#include <cstdint>
#include <optional>

#include "tensor/type.h"

namespace heddle::emit {

// Inclusive; for integers. A result whose bounds leave s64 may wrap: its bounds are all of s64.
struct Bounds {
  int64_t low = INT64_MIN, high = INT64_MAX;

  static Bounds of(tensor::Type type);  // u64: all of s64, and never used to prove a sign
  static Bounds exactly(int64_t value) { return {value, value}; }
  bool constant() const { return low == high; }
  bool within(Bounds outer) const { return low >= outer.low && high <= outer.high; }
  bool fits_s32() const { return low >= INT32_MIN && high <= INT32_MAX; }
  bool operator==(const Bounds&) const = default;
};
Bounds operator+(Bounds a, Bounds b);
Bounds operator-(Bounds a, Bounds b);
Bounds operator*(Bounds a, Bounds b);
Bounds unite(Bounds a, Bounds b);
// floor(a / b) and the remainder, b > 0.
int64_t floor_quotient(int64_t a, int64_t b);
int64_t floor_remainder(int64_t a, int64_t b);
// Bounds of these.
Bounds floor_div(Bounds a, Bounds b);
Bounds floor_mod(Bounds a, Bounds b);

// Over the lanes of the enclosing vector loop a value is one of
//   uniform: `v` is a scalar, equal in all lanes (also outside vector loops);
//   linear:  `v` is a scalar, lane l has v + l * stride (s64 only, stride not 0);
//   varying: `v` is a vector of the lanes. A varying s64 whose bounds fit may be held in i32.
struct Val {
  llvm::Value* v = nullptr;
  bool varying = false;
  int64_t stride = 0;
  Bounds bounds;         // integers: of all active lanes, wherever the value is used
  int64_t multiple = 1;  // integers: `v` (lane 0) is a multiple of this; 0: it is 0
  // The scope (scope.cc) at whose level the value is available, and whether it may only be used in
  // the current statement, because it depends on memory.
  int level = 0;
  bool pinned = false;

  bool uniform() const { return !varying && stride == 0; }
};

// The remainder by d > 0 of an integer in lane 0, if known.
std::optional<int64_t> residue(const Val& x, int64_t d);

}  // namespace heddle::emit
