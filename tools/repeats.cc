#include "repeats.h"

#include <algorithm>
#include <unordered_map>

namespace heddle::tools {
namespace {

constexpr size_t kMostPeriod = 4096;

// Where element i equals element i + period, from `begin` on, `matches` times.
struct Run {
  size_t begin = 0, matches = 0, period = 0;
  size_t count() const { return matches / period + 1; }
  size_t saved() const { return (count() - 1) * period; }
};

std::vector<size_t> numbered(const std::vector<std::string>& signs) {
  std::unordered_map<std::string, size_t> known;
  std::vector<size_t> numbers;
  for (const std::string& sign : signs)
    numbers.push_back(known.emplace(sign, known.size()).first->second);
  return numbers;
}

std::vector<Run> runs_of(const std::vector<size_t>& signs) {
  std::vector<Run> runs;
  const size_t most = std::min(kMostPeriod, signs.size() / 2);
  for (size_t period = 1; period <= most; ++period) {
    size_t matches = 0;
    for (size_t i = 0; i + period <= signs.size(); ++i) {
      if (i + period < signs.size() && signs[i] == signs[i + period]) {
        ++matches;
        continue;
      }
      if (matches >= period) runs.push_back({i - matches, matches, period});
      matches = 0;
    }
  }
  return runs;
}

// Of the free part [begin, end) of the run the best beginning; count 0: nothing repeats there.
Repeat placed(const Run& run, size_t begin, size_t end, const std::vector<std::string>& scopes) {
  const size_t count = (end - begin) / run.period;
  if (count < 2) return {};
  Repeat best;
  size_t most = 0;
  for (size_t shift = 0; shift <= (end - begin) - count * run.period; ++shift) {
    size_t changes = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = begin + shift + i * run.period;
      if (at == 0 || scopes[at] != scopes[at - 1]) ++changes;
    }
    if (best.count > 0 && changes <= most) continue;
    best = {begin + shift, run.period, count};
    most = changes;
  }
  return best;
}

}  // namespace

std::vector<Repeat> repeats_of(const std::vector<std::string>& signs,
                               const std::vector<std::string>& scopes) {
  std::vector<Run> runs = runs_of(numbered(signs));
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.saved() != b.saved() ? a.saved() > b.saved() : a.period < b.period;
  });
  std::vector<bool> taken(signs.size());
  std::vector<Repeat> repeats;
  for (const Run& run : runs) {
    const size_t end = run.begin + run.matches + run.period;
    for (size_t from = run.begin; from < end;) {
      size_t to = from;
      while (to < end && !taken[to]) ++to;
      if (const Repeat repeat = placed(run, from, to, scopes); repeat.count > 0) {
        repeats.push_back(repeat);
        std::fill_n(taken.begin() + static_cast<ptrdiff_t>(repeat.first),
                    repeat.period * repeat.count, true);
      }
      from = to + 1;
    }
  }
  std::sort(repeats.begin(), repeats.end(),
            [](const Repeat& a, const Repeat& b) { return a.first < b.first; });
  return repeats;
}

}  // namespace heddle::tools
