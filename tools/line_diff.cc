#include "line_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace heddle::tools {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.size(), text.find('\n'));
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return lines;
}

struct Pair {
  size_t before = 0, after = 0;
};

// Of lines that are there once in each, in the order of `after`.
std::vector<Pair> unique_pairs(const Lines& before, const Lines& after) {
  struct Places {
    size_t before = 0, after = 0, befores = 0, afters = 0;
  };
  std::unordered_map<std::string_view, Places> places;
  for (size_t i = 0; i < before.size(); ++i) {
    Places& at = places[before[i]];
    at.before = i;
    ++at.befores;
  }
  for (size_t i = 0; i < after.size(); ++i) {
    Places& at = places[after[i]];
    at.after = i;
    ++at.afters;
  }
  std::vector<Pair> pairs;
  for (size_t i = 0; i < after.size(); ++i)
    if (const Places& at = places[after[i]]; at.befores == 1 && at.afters == 1)
      pairs.push_back({at.before, i});
  return pairs;
}

// The most pairs that are in order in both.
std::vector<Pair> longest_rising(const std::vector<Pair>& pairs) {
  std::vector<size_t> ends, previous(pairs.size());  // ends[n]: last of the best n + 1
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto place =
        std::lower_bound(ends.begin(), ends.end(), pairs[i].before,
                         [&](size_t end, size_t wanted) { return pairs[end].before < wanted; });
    previous[i] = place == ends.begin() ? pairs.size() : *(place - 1);
    if (place == ends.end())
      ends.push_back(i);
    else
      *place = i;
  }
  std::vector<Pair> rising;
  for (size_t i = ends.empty() ? pairs.size() : ends.back(); i < pairs.size(); i = previous[i])
    rising.push_back(pairs[i]);
  std::reverse(rising.begin(), rising.end());
  return rising;
}

class Writer {
 public:
  explicit Writer(size_t most) : most_(most) {}

  void change(const Lines& before, size_t from, size_t to, const Lines& after, size_t begin,
              size_t end) {
    if (from == to && begin == end) return;
    if (!diff_.text.empty()) line("…", "");
    if (begin > 0) line("  ", after[begin - 1]);
    for (size_t i = from; i < to; ++i) line("- ", before[i]);
    for (size_t i = begin; i < end; ++i) line("+ ", after[i]);
    diff_.gone += to - from;
    diff_.come += end - begin;
  }
  LineDiff take() {
    if (left_out_ > 0) diff_.text += fmt::format("… and {} lines more\n", left_out_);
    return std::move(diff_);
  }

 private:
  void line(std::string_view mark, std::string_view text) {
    if (written_++ >= most_) {
      ++left_out_;
      return;
    }
    diff_.text += mark;
    diff_.text += text.substr(0, kMostColumns);
    if (text.size() > kMostColumns) diff_.text += "…";
    diff_.text += '\n';
  }

  size_t most_, written_ = 0, left_out_ = 0;
  LineDiff diff_;
};

}  // namespace

LineDiff diff_of(std::string_view before_text, std::string_view after_text, size_t most_lines) {
  const Lines before = lines_of(before_text), after = lines_of(after_text);
  std::vector<Pair> kept = longest_rising(unique_pairs(before, after));
  kept.push_back({before.size(), after.size()});
  Writer writer(most_lines);
  size_t from = 0, begin = 0;
  for (const Pair& next : kept) {
    size_t to = next.before, end = next.after;
    // What is equal beside an anchor, though not once.
    while (from < to && begin < end && before[from] == after[begin]) ++from, ++begin;
    while (from < to && begin < end && before[to - 1] == after[end - 1]) --to, --end;
    writer.change(before, from, to, after, begin, end);
    from = next.before + 1;
    begin = next.after + 1;
  }
  return writer.take();
}

}  // namespace heddle::tools
