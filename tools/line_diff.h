// What changed between two texts, by lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle::tools {

struct LineDiff {
  // "  " in front of a line that stayed (one before each change), "- " of one that went, "+ " of
  // one that came, "…" alone between changes. Lines longer than kMostColumns bytes are cut.
  std::string text;
  size_t gone = 0, come = 0;  // lines, all of them
};

inline constexpr size_t kMostColumns = 600;

// Lines that both texts have once hold the two together (patience diff), so that it takes little
// more than linear time; the text has at most so many lines, and says what it leaves out.
LineDiff diff_of(std::string_view before, std::string_view after, size_t most_lines);

}  // namespace heddle::tools
