// What a calibration set showed of a model's values, and a file that keeps it.
#pragma once

#include <chrono>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "output_file.h"
#include "quantize/histogram.h"
#include "tensor/literal.h"

namespace heddle::tools {

class ValueStatistics {
 public:
  struct Seen {
    quantize::Histogram histogram;
    std::vector<double> sums, squares;  // by channel; squares: of what is finite
    std::vector<float> most;            // by channel: the largest finite |x|
    int64_t each = 0;                   // elements that were added to a sum
  };

  // Values of f32; channels are the second dimension of images, the last of rows.
  void add(const std::string& name, const tensor::Literal& value, bool is_image);
  const std::map<std::string, Seen>& values() const { return values_; }
  std::vector<double> means(const std::string& name) const;  // by channel; none: not seen

  std::string text() const;
  // What text() made, up to its end. False: it is damaged, and nothing is changed.
  bool read(std::istream& in);

 private:
  static bool read_seen(std::istream& in, Seen* seen);
  std::map<std::string, Seen> values_;
};

// The file of --statistics. It has a part for each pass over the set; the identity of a pass says
// what was seen: a part of something else is not read.
class StatisticsFile {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBetween{30};  // saves

  explicit StatisticsFile(const OutputFile* file) : file_(file) {}
  const std::string& path() const { return file_->path; }

  // The number of samples that the file has seen; 0: it cannot be used. Saves of this pass follow.
  int64_t begin(const std::string& identity, ValueStatistics* seen,
                Clock::time_point now = Clock::now());
  // After each sample: saves where the last time is long ago.
  Status saw(int64_t samples, const ValueStatistics& seen, Clock::time_point now = Clock::now());
  Status save(int64_t samples, const ValueStatistics& seen, Clock::time_point now = Clock::now());

 private:
  const OutputFile* file_;
  std::string before_;           // the parts of passes that ended
  std::string identity_, part_;  // of this pass; what was saved of it
  Clock::time_point last_;
};

}  // namespace heddle::tools
