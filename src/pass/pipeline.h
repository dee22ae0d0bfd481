// Pipeline: the passes to run and their order, as text.
//
//   list  = step ("," step)*        the empty text is the empty list
//   step  = name | "{" list "}*" [rounds]
//   name  = letters, digits, "_"
//
// "{a,b}*" runs a, b, a, b, … until neither has changed anything since it last ran, at most
// `rounds` (kDefaultRounds) times each. Spaces are skipped. parse(print(p)) equals p.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::pass {

struct Pipeline {
  static constexpr int64_t kDefaultRounds = 16;
  struct Step {
    std::string pass;         // empty: a group
    std::vector<Step> group;  // run to a fixpoint
    int64_t max_rounds = kDefaultRounds;
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;
  bool operator==(const Pipeline&) const = default;
};

// Error: position in the text, got, wanted. Nesting is bounded.
Result<Pipeline> parse_pipeline(std::string_view text);
std::string to_string(const Pipeline& pipeline);

}  // namespace heddle::pass
