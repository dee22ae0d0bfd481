// What a calibration set showed of a model's values, and a file that keeps it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quantize/histogram.h"
#include "tensor/literal.h"

namespace heddle::tools {

class ValueStatistics {
 public:
  struct Seen {
    quantize::Histogram histogram;
    std::vector<double> sums;  // by channel
    int64_t each = 0;          // elements that were added to a sum
  };

  // Values of f32; channels are the second dimension of images, the last of rows.
  void add(const std::string& name, const tensor::Literal& value, bool is_image);
  const std::map<std::string, Seen>& values() const { return values_; }
  std::vector<double> means(const std::string& name) const;  // by channel; none: not seen

  // `identity` says what they are of: a file of something else is not read. The number of samples
  // that the file has seen; 0: it cannot be used.
  int64_t load(const std::string& path, const std::string& identity);
  std::string text(const std::string& identity, int64_t samples) const;

 private:
  std::map<std::string, Seen> values_;
};

}  // namespace heddle::tools
