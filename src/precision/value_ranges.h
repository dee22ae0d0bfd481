// Ranges of f32 values in runs over a calibration set, to decide whether f16 holds them: the
// largest one and counts by power of two, in memory that does not grow with the set. A list of
// operators is not enough: one product of T5 gives 66,246, while similar ones give a hundredth of
// that.
//
// Text: JSON, {"schema": 1, "kind": "ranges", "values": [{"value": …, "exponents": [[e, n], …]}]}.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::precision {

constexpr double kMostF16 = 65504;
// Below 2^-14 f16 has fewer than 11 bits, below 2^-25 it has 0.
constexpr int kLeastNormalF16 = -14, kLeastF16 = -25;

struct ValueRange {
  static constexpr int kLeastExponent = -149, kMostExponent = 127;

  int64_t elements = 0, not_finite = 0;
  double most = 0;  // the largest finite |x|
  // Counts of values with 2^e <= |x| < 2^(e+1), by e - kLeastExponent. Zeros are not counted.
  std::array<int64_t, kMostExponent - kLeastExponent + 1> counts{};

  void add(std::span<const float> values);
  int64_t nonzeros() const { return below(kMostExponent + 1); }
  int64_t below(int exponent) const;       // 0 < |x| < 2^exponent
  double share_below(int exponent) const;  // of nonzero values
  bool operator==(const ValueRange&) const = default;
};

// By value, as named by same_value() of mixed_graph.h.
using ValueRanges = std::map<std::string, ValueRange>;

// Allows for inputs whose values are eight times as large as those seen.
bool overflows_f16(const ValueRange& seen);
// Whether a value with these counts may be stored in f16: it does not overflow, and at most 1 in
// 1,000 loses bits because it is small.
bool fits_f16(const ValueRange& seen);

// Deterministic.
std::string to_text(const ValueRanges& ranges, const std::string& model, int64_t samples);
// Error (user): invalid text, or contradictory counts; the message lacks the file's name.
Result<ValueRanges> parse_ranges(std::string_view text);

}  // namespace heddle::precision
