#include "suggest.h"

#include <algorithm>
#include <cctype>

namespace heddle::tools {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the table: of two letters ago, of the one before, of this one.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
  constexpr size_t kLongest = 64;
  if (word.size() > kLongest) return {};
  const std::string wanted = lower(word);
  std::string best;
  // A third of the letters may be wrong.
  size_t least = std::max<size_t>(word.size(), 3) / 3 + 1;
  for (const std::string& each : words) {
    const size_t distance = edit_distance(wanted, lower(each));
    if (distance >= least) continue;
    least = distance;
    best = each;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words) {
  const std::string found = nearest(word, words);
  return found.empty() ? "" : "; did you mean " + found + "?";
}

}  // namespace heddle::tools
