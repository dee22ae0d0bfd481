// A scoreboard: what became of each test, counted by outcome and reason.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace heddle::tools {

struct Line {
  std::string file, module, outcome, reason;
};

// What must not be: "mismatch", "error", "round trip", "crash", "timeout". What is refused with a
// reason is listed: test suites have wrong files too.
bool fails(const std::string& outcome);
bool any_fails(const std::vector<Line>& lines);

// A line an outcome, and under it a line a reason with its count and its first test. `good`: the
// outcome that needs no reasons.
void print_outcomes(const std::vector<Line>& lines, const std::string& good);
nlohmann::ordered_json count_outcomes(const std::vector<Line>& lines);

// A reason without what is the test's own, so that equal ones are counted together.
std::string kind_of_reason(const Line& line);

}  // namespace heddle::tools
