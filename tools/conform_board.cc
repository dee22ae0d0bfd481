#include "conform_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace heddle::tools {

bool fails(const std::string& outcome) {
  static const std::set<std::string> kFailures = {"mismatch", "error", "round trip", "crash",
                                                  "timeout"};
  return kFailures.contains(outcome);
}

bool any_fails(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [](const Line& line) { return fails(line.outcome); });
}

std::string kind_of_reason(const Line& line) {
  std::string reason = line.reason;
  if (reason.starts_with(line.module + ": ")) reason = reason.substr(line.module.size() + 2);
  // "node 'name' (Operator, output 'y'): what" is "Operator: what".
  if (reason.starts_with("node ")) {
    const size_t open = reason.find(" ("), end = reason.find("): ", open);
    if (end != std::string::npos) {
      const std::string node = reason.substr(open + 2, end - open - 2);
      reason = node.substr(0, node.find(',')) + ": " + reason.substr(end + 3);
    }
  }
  const size_t bracket = reason.find(" (");
  if (bracket != std::string::npos) reason.resize(bracket);
  constexpr size_t kLongest = 100;
  if (reason.size() > kLongest) reason = reason.substr(0, kLongest) + "...";
  return reason;
}

void print_outcomes(const std::vector<Line>& lines, const std::string& good) {
  std::map<std::string, std::map<std::string, std::vector<const Line*>>> outcomes;
  for (const Line& line : lines) outcomes[line.outcome][kind_of_reason(line)].push_back(&line);
  for (const auto& [outcome, reasons] : outcomes) {
    size_t count = 0;
    for (const auto& [reason, tests] : reasons) count += tests.size();
    fmt::print("{:>6} {}\n", count, outcome);
    if (outcome == good) continue;
    for (const auto& [reason, tests] : reasons)
      fmt::print("       {:>6} {}  [{} {}]\n", tests.size(), reason, tests[0]->file,
                 tests[0]->module);
  }
}

nlohmann::ordered_json count_outcomes(const std::vector<Line>& lines) {
  std::map<std::string, int64_t> counts;
  for (const Line& line : lines) ++counts[line.outcome];
  return counts;
}

}  // namespace heddle::tools
