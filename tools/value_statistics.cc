#include "value_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace heddle::tools {

void ValueStatistics::add(const std::string& name, const tensor::Literal& value, bool is_image) {
  Seen& seen = values_[name];
  if (value.type() != tensor::Type::f32) return;
  const auto values = value.values<float>();
  seen.histogram.add(values);
  const std::vector<int64_t> extents = value.shape().extents();
  if (extents.size() < 2) return;
  const size_t axis = extents.size() >= 3 && is_image ? 1 : extents.size() - 1;
  int64_t inner = 1;
  for (size_t d = axis + 1; d < extents.size(); ++d) inner *= extents[d];
  const int64_t channels = extents[axis];
  if (channels == 0) return;
  seen.sums.resize(static_cast<size_t>(channels), 0);
  seen.squares.resize(static_cast<size_t>(channels), 0);
  seen.most.resize(static_cast<size_t>(channels), 0);
  for (int64_t at = 0; at < value.elems(); at += inner) {
    double sum = 0, squares = 0;
    float most = 0;
    for (int64_t i = 0; i < inner; ++i) {
      const float x = values[static_cast<size_t>(at + i)];
      sum += x;
      if (!std::isfinite(x)) continue;
      squares += static_cast<double>(x) * x;
      most = std::max(most, std::abs(x));
    }
    const auto channel = static_cast<size_t>(at / inner % channels);
    seen.sums[channel] += sum;
    seen.squares[channel] += squares;
    seen.most[channel] = std::max(seen.most[channel], most);
  }
  seen.each += value.elems() / channels;
}

std::vector<double> ValueStatistics::means(const std::string& name) const {
  std::vector<double> means;
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.each == 0) return means;
  for (double sum : found->second.sums) {
    if (!std::isfinite(sum)) return {};
    means.push_back(sum / static_cast<double>(found->second.each));
  }
  return means;
}

bool ValueStatistics::read_seen(std::istream& in, Seen* seen) {
  std::string histogram, line;
  if (!std::getline(in, histogram) || !quantize::Histogram::load(histogram, &seen->histogram) ||
      !std::getline(in, line))
    return false;
  std::istringstream sums(line);
  sums >> seen->each;
  for (double sum = 0; sums >> sum;) seen->sums.push_back(sum);
  if (!std::getline(in, line)) return false;
  std::istringstream squares(line);
  for (double sum = 0; squares >> sum;) seen->squares.push_back(sum);
  if (!std::getline(in, line)) return false;
  std::istringstream most(line);
  for (float x = 0; most >> x;) seen->most.push_back(x);
  return true;
}

bool ValueStatistics::read(std::istream& in) {
  size_t count = 0;
  std::string name;
  if (!(in >> count)) return false;
  std::getline(in, name);
  std::map<std::string, Seen> read;
  for (size_t i = 0; i < count; ++i)
    if (!std::getline(in, name) || !read_seen(in, &read[name])) return false;
  values_ = std::move(read);
  return true;
}

std::string ValueStatistics::text() const {
  std::string text = fmt::format("{}\n", values_.size());
  for (const auto& [name, seen] : values_) {
    text += fmt::format("{}\n{}\n{}", name, seen.histogram.save(), seen.each);
    for (double sum : seen.sums) text += fmt::format(" {}", sum);
    text += "\n";
    for (double sum : seen.squares) text += fmt::format("{} ", sum);
    text += "\n";
    for (float most : seen.most) text += fmt::format("{} ", most);
    text += "\n";
  }
  return text;
}

int64_t StatisticsFile::begin(const std::string& identity, ValueStatistics* seen,
                              Clock::time_point now) {
  before_ += part_;
  part_.clear();
  identity_ = identity;
  last_ = now;
  if (!file_->given()) return 0;
  std::ifstream file(file_->path);
  for (std::string line; std::getline(file, line);) {
    int64_t samples = 0;
    ValueStatistics read;
    if (!(file >> samples) || !read.read(file)) return 0;
    if (line != identity) continue;
    *seen = std::move(read);
    part_ = fmt::format("{}\n{} {}", identity_, samples, seen->text());
    return samples;
  }
  return 0;
}

Status StatisticsFile::saw(int64_t samples, const ValueStatistics& seen, Clock::time_point now) {
  return now - last_ < kBetween ? Status() : save(samples, seen, now);
}

Status StatisticsFile::save(int64_t samples, const ValueStatistics& seen, Clock::time_point now) {
  last_ = now;
  if (!file_->given()) return {};
  part_ = fmt::format("{}\n{} {}", identity_, samples, seen.text());
  return file_->write(before_ + part_);
}

}  // namespace heddle::tools
