// What f32 values were in runs over a calibration set, and whether f16 holds them: the largest one
// and counts by power of two, in memory that does not grow with the set. A list of operators cannot
// tell: one product of T5 gives 66,246, where its like give a hundredth of that.
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
  // Of those with 2^e <= |x| < 2^(e+1), by e - kLeastExponent. Zeros are in none.
  std::array<int64_t, kMostExponent - kLeastExponent + 1> counts{};

  void add(std::span<const float> values);
  int64_t nonzeros() const { return below(kMostExponent + 1); }
  int64_t below(int exponent) const;       // 0 < |x| < 2^exponent
  double share_below(int exponent) const;  // of those that are not 0
  bool operator==(const ValueRange&) const = default;
};

// By what the values are called: same_value() of mixed_graph.h.
using ValueRanges = std::map<std::string, ValueRange>;

// Other inputs may give eight times as much as those that were seen.
bool overflows_f16(const ValueRange& seen);
// Whether a value of that record may be kept in f16: it does not overflow, and at most 1 in 1,000
// loses bits because it is small.
bool fits_f16(const ValueRange& seen);

// The same records give the same bytes.
std::string to_text(const ValueRanges& ranges, const std::string& model, int64_t samples);
// Error (user): it is no such text, or counts that contradict each other; without the file's name.
Result<ValueRanges> parse_ranges(std::string_view text);

}  // namespace heddle::precision
