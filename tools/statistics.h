// Times of many runs in a few numbers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace heddle::tools {

struct Statistics {
  double median = 0, min = 0, mean = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
  double cv = 0;  // standard deviation over mean
};

// Percentiles are interpolated between the two nearest values. Zeros of an empty list.
Statistics statistics_of(std::vector<double> values);
nlohmann::ordered_json to_json(const Statistics& statistics);

}  // namespace heddle::tools
