#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace heddle::tools {

Statistics statistics_of(std::vector<double> values) {
  Statistics result;
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const double place = part * static_cast<double>(values.size() - 1);
    const auto low = static_cast<size_t>(place);
    const size_t high = std::min(low + 1, values.size() - 1);
    return values[low] + (values[high] - values[low]) * (place - static_cast<double>(low));
  };
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (double value : values) sum += value;
  result.mean = sum / count;
  for (double value : values) squares += (value - result.mean) * (value - result.mean);
  result.median = at(0.5);
  result.min = values.front();
  result.p90 = at(0.90);
  result.p95 = at(0.95);
  result.p99 = at(0.99);
  result.max = values.back();
  if (values.size() > 1 && result.mean > 0)
    result.cv = std::sqrt(squares / (count - 1)) / result.mean;
  return result;
}

nlohmann::ordered_json to_json(const Statistics& s) {
  nlohmann::ordered_json json;
  json["median"] = s.median;
  json["min"] = s.min;
  json["mean"] = s.mean;
  json["p90"] = s.p90;
  json["p95"] = s.p95;
  json["p99"] = s.p99;
  json["max"] = s.max;
  json["cv"] = s.cv;
  return json;
}

}  // namespace heddle::tools
