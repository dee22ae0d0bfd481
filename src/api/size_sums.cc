#include "api/size_sums.h"

#include <algorithm>
#include <optional>

namespace heddle::api {

int64_t sum_of(const SumOfExtents& sum, const Extents& extents) {
  int64_t result = sum.more;
  for (const std::string& name : sum.of) result += extents.at(name);
  return result;
}

namespace {

// `more` is 0 for two: of three names some are a number apart by chance.
std::optional<SumOfExtents> sum_in_all(const std::string& name, std::vector<std::string> of,
                                       const std::vector<Extents>& runs) {
  SumOfExtents sum{std::move(of), 0};
  const int64_t more = runs.front().at(name) - sum_of(sum, runs.front());
  if (more < 0 || (more > 0 && sum.of.size() > 1)) return std::nullopt;
  sum.more = more;
  const bool holds = std::all_of(runs.begin(), runs.end(), [&](const Extents& run) {
    return run.at(name) == sum_of(sum, run);
  });
  return holds ? std::optional(sum) : std::nullopt;
}

}  // namespace

std::map<std::string, SumOfExtents> sums_among(const std::vector<Extents>& runs,
                                               const std::set<std::string>& differ) {
  std::map<std::string, SumOfExtents> result;
  if (runs.size() < 2) return result;
  std::vector<std::string> descending(differ.rbegin(), differ.rend());
  std::stable_sort(descending.begin(), descending.end(), [&](const auto& a, const auto& b) {
    return runs.back().at(a) > runs.back().at(b);
  });
  std::set<std::string> parts;
  const auto add = [&](const std::string& name, std::vector<std::string> of) {
    if (result.contains(name)) return;
    const std::optional<SumOfExtents> sum = sum_in_all(name, of, runs);
    if (!sum) return;
    parts.insert(of.begin(), of.end());
    result.emplace(name, *sum);
  };
  for (size_t x = 0; x < descending.size(); ++x) {
    if (parts.contains(descending[x])) continue;
    for (size_t a = descending.size(); a-- > x + 1;) add(descending[x], {descending[a]});
    for (size_t a = x + 1; a < descending.size(); ++a)
      for (size_t b = a + 1; b < descending.size(); ++b)
        add(descending[x], {descending[a], descending[b]});
  }
  return result;
}

}  // namespace heddle::api
