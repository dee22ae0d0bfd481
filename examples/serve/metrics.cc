#include "serve.h"

namespace serve {

void Metrics::add(const std::string& name, const std::string& labels, double by) {
  const std::lock_guard lock(mutex_);
  families_[name][fmt::format("{}{{{}}}", name, labels)] += by;
}

void Metrics::set(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  families_[name][name] = value;
}

void Metrics::observe(const std::string& name, const std::string& labels, double value) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, double>& family = families_[name];
  for (const char* most : {"0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "+Inf"})
    family[fmt::format("{}_bucket{{{},le=\"{}\"}}", name, labels, most)] += value <= atof(most);
  family[fmt::format("{}_count{{{}}}", name, labels)] += 1;
  family[fmt::format("{}_sum{{{}}}", name, labels)] += value;
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string result;
  for (const auto& [name, family] : families_) {
    result += fmt::format("# TYPE {} {}\n", name,
                          name.ends_with("_total")     ? "counter"
                          : name.ends_with("_seconds") ? "histogram"
                                                       : "gauge");
    for (const auto& [series, value] : family) result += fmt::format("{} {}\n", series, value);
  }
  return result;
}

}  // namespace serve
