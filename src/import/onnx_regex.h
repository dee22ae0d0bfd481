// Regular expressions of RegexFullMatch: RE2's syntax without named groups, flags, Unicode classes
// and \C. Matching time is proportional to the product of the lengths of pattern and text; matching
// does not recurse.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::import {

class Regex {
 public:
  // Errors (user): invalid or unsupported syntax, or too large.
  static Result<Regex> compile(std::string_view pattern);
  bool matches_all(std::string_view text) const;  // UTF-8

 private:
  friend class RegexParser;
  enum class Kind { one_of, split, jump, at_begin, at_end, at_word, not_at_word, match };
  struct Range {
    uint32_t first, last;
  };
  struct Step {
    Kind kind = Kind::match;
    std::vector<Range> ranges;  // one_of
    bool inverse = false;
    int next = 0, other = 0;  // split: both; jump: next
  };
  std::vector<Step> steps_;
};

}  // namespace heddle::import
