#include "value_statistics.h"

#include <fmt/format.h>

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
  for (int64_t at = 0; at < value.elems(); at += inner) {
    double sum = 0;
    for (int64_t i = 0; i < inner; ++i) sum += values[static_cast<size_t>(at + i)];
    seen.sums[static_cast<size_t>(at / inner % channels)] += sum;
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

int64_t ValueStatistics::load(const std::string& path, const std::string& identity) {
  std::ifstream file(path);
  std::string line;
  int64_t samples = 0;
  if (!std::getline(file, line) || line != identity || !(file >> samples)) return 0;
  std::getline(file, line);
  std::map<std::string, Seen> read;
  std::string name, histogram, sums;
  while (std::getline(file, name) && std::getline(file, histogram) && std::getline(file, sums)) {
    Seen& seen = read[name];
    if (!quantize::Histogram::load(histogram, &seen.histogram)) return 0;
    std::istringstream in(sums);
    in >> seen.each;
    for (double sum = 0; in >> sum;) seen.sums.push_back(sum);
  }
  values_ = std::move(read);
  return samples;
}

std::string ValueStatistics::text(const std::string& identity, int64_t samples) const {
  std::string text = fmt::format("{}\n{}\n", identity, samples);
  for (const auto& [name, seen] : values_) {
    text += fmt::format("{}\n{}\n{}", name, seen.histogram.save(), seen.each);
    for (double sum : seen.sums) text += fmt::format(" {}", sum);
    text += "\n";
  }
  return text;
}

}  // namespace heddle::tools
