// Histogram of a tensor's values over a calibration set, in memory that does not grow with the set:
// 2,048 bins of both signs, whose width doubles if a value is outside; and the range that a
// quantiser should cover.
//
// Percentile, entropy (KL) and MSE calibration: specs of ONNX Runtime, TensorRT and PPQ; the error
// of a range is that of rounding to a step (a twelfth of its square) plus that of clipping.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle::quantize {

enum class Method : uint8_t { minmax, percentile, mse, kl };

struct Range {
  double low = 0, high = 0;
};

class Histogram {
 public:
  // Values that are not finite are only counted.
  void add(std::span<const float> values);

  int64_t count() const { return count_; }
  int64_t unusable() const { return unusable_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  double power() const { return count_ > 0 ? squares_ / static_cast<double>(count_) : 0; }
  Range limits() const { return {low_, high_}; }

  // Contains 0. Symmetric: equal lengths on both sides, or no negative side if no value is
  // negative.
  Range range(Method method, bool symmetric, double percentile = 99.999) const;
  // Mean squared error of 8-bit values over that range.
  double error(const Range& range) const;

  std::string save() const;  // one line
  static bool load(const std::string& line, Histogram* to);

 private:
  static constexpr int kHalf = 1024;
  void grow(double most);
  double center(int bin) const { return (bin - kHalf + 0.5) * limit_ / kHalf; }
  Range cut(double tail) const;
  Range best(bool symmetric) const;
  double divergence(int inside) const;
  Range least_divergence() const;

  double limit_ = 0;  // the bins cover [-limit, limit)
  std::vector<int64_t> bins_ = std::vector<int64_t>(2 * kHalf, 0);
  int64_t count_ = 0, zeros_ = 0, unusable_ = 0;  // zeros are in no bin
  double low_ = 0, high_ = 0, sum_ = 0, squares_ = 0;
};

}  // namespace heddle::quantize
