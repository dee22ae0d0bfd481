#include "arena/fit_offsets.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace heddle::arena {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// A block by its sections, half-open. Sections are the steps at which a maximal set of blocks is
// live: two blocks with overlapping lifetimes have a section in common.
struct Item {
  int64_t bytes = 0, steps = 0;
  int begin = 0, end = 0;
};

// The order in which blocks with the same offset are tried: by lifetime in steps, by area (bytes
// times steps), by the load (bytes live) during their lifetime.
enum class Preference { steps_area_load, load_area_steps, load_steps_area };

// Depth-first search. The next block always goes to the lowest offset that the blocks below it
// leave, and offsets never decrease from one placement to the next: every solution can be compacted
// into that form.
class FitSearch {
 public:
  FitSearch(const std::vector<Block>& blocks, int64_t capacity, const Conflicts& conflicts,
            Cliques cliques)
      : capacity_(capacity), cliques_(std::move(cliques)) {
    find_sections(blocks);
    const size_t count = items_.size();
    apart_.resize(count);
    inside_.resize(static_cast<size_t>(sections_));
    overlaps_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      for (int s = items_[i].begin; s < items_[i].end; ++s)
        inside_[s].push_back(static_cast<int>(i));
      for (size_t j = 0; j < i; ++j) {
        const bool apart = items_[i].begin >= items_[j].end || items_[j].begin >= items_[i].end;
        if (apart && (conflicts.empty() || !conflicts[i][j])) continue;
        overlaps_[i].push_back(static_cast<int>(j));
        overlaps_[j].push_back(static_cast<int>(i));
        if (!apart) continue;
        apart_[i].push_back(static_cast<int>(j));
        apart_[j].push_back(static_cast<int>(i));
      }
    }
    is_changed_.assign(inside_.size(), false);
  }

  // Tries the three preferences in turn, each round with twice the work.
  FitResult run(int64_t work) {
    FitResult result;
    const auto count = static_cast<int64_t>(items_.size());
    for (int64_t turn = 8 * count * count + 1024;; turn *= 2) {
      for (const Preference preference : {Preference::steps_area_load, Preference::load_area_steps,
                                          Preference::load_steps_area}) {
        if (result.work >= work) return result;
        preference_ = preference;
        work_left_ = std::min(turn, work - result.work);
        const int64_t given = work_left_;
        const Fit fit = search();
        result.work += given - work_left_;
        if (fit == Fit::unknown) continue;
        result.fit = fit;
        if (fit == Fit::fits) result.offsets = offsets_;
        return result;
      }
    }
  }

 private:
  // A section lies between a begin and the next end; the blocks live at other steps are a subset of
  // those of a neighbouring section.
  void find_sections(const std::vector<Block>& blocks) {
    std::vector<int64_t> points;
    for (const Block& block : blocks) {
      points.push_back(block.first);
      points.push_back(block.last + 1);
    }
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    auto place = [&](int64_t step) {
      return static_cast<size_t>(std::lower_bound(points.begin(), points.end(), step) -
                                 points.begin());
    };
    std::vector<bool> begins(points.size() + 1), ends(points.size() + 1);
    for (const Block& block : blocks) {
      begins[place(block.first)] = true;
      ends[place(block.last + 1)] = true;
    }
    std::vector<int> before(points.size() + 1);  // number of sections before each point
    for (size_t p = 0; p < points.size(); ++p)
      before[p + 1] = before[p] + (begins[p] && ends[p + 1] ? 1 : 0);
    sections_ = before.back();
    for (const Block& block : blocks)
      items_.push_back({block.bytes, block.last - block.first + 1, before[place(block.first)],
                        before[place(block.last + 1)]});
  }

  Fit search() {
    const size_t count = items_.size();
    lowest_.assign(count, 0);
    placed_.assign(count, false);
    offsets_.assign(count, 0);
    to_place_.assign(inside_.size(), 0);
    floor_.assign(inside_.size(), 0);
    crossing_.assign(inside_.size(), 0);
    undo_.clear();
    std::vector<int> all(count);
    std::iota(all.begin(), all.end(), 0);
    for (const Item& item : items_) {
      for (int s = item.begin; s < item.end; ++s) to_place_[s] += item.bytes;
      for (int s = item.begin; s + 1 < item.end; ++s) ++crossing_[s];
    }
    for (int i : all)
      for (int j : apart_[i])
        if (j < i) cross(i, j, 1);
    if (!can_fit(0, sections_, 0)) return Fit::never;
    std::vector<int> cuts = {0};
    for (int s = 0; s + 1 < sections_; ++s)
      if (crossing_[s] == 0) cuts.push_back(s + 1);
    cuts.push_back(sections_);
    return search_parts(all, cuts, 0);
  }

  // A conflict of blocks without a common section joins all sections between them into one part.
  void cross(int i, int j, int change) {
    const auto [first, last] = std::minmax(
        items_[i], items_[j], [](const Item& a, const Item& b) { return a.begin < b.begin; });
    for (int s = first.end - 1; s < last.begin; ++s) crossing_[s] += change;
  }

  // Parts that no unplaced block crosses are solved independently.
  Fit search_parts(const std::vector<int>& items, const std::vector<int>& cuts, int64_t from) {
    for (size_t c = 0; c + 1 < cuts.size(); ++c) {
      std::vector<int> part;
      for (int i : items)
        if (!placed_[i] && items_[i].begin >= cuts[c] && items_[i].end <= cuts[c + 1])
          part.push_back(i);
      if (part.empty()) continue;
      sort_by_preference(part);
      const Fit fit = place_next(part, cuts[c], cuts[c + 1], from, 0);
      if (fit != Fit::fits) return fit;
    }
    return Fit::fits;
  }

  void sort_by_preference(std::vector<int>& items) const {
    std::vector<std::pair<std::array<int64_t, 3>, int>> keyed;
    for (int i : items) {
      const Item& item = items_[i];
      const int64_t area = item.bytes * item.steps;
      const int64_t load =
          *std::max_element(to_place_.begin() + item.begin, to_place_.begin() + item.end);
      std::array<int64_t, 3> key = {load, item.steps, area};
      if (preference_ == Preference::steps_area_load) key = {item.steps, area, load};
      if (preference_ == Preference::load_area_steps) key = {load, area, item.steps};
      for (int64_t& part : key) part = -part;
      keyed.push_back({key, i});
    }
    std::sort(keyed.begin(), keyed.end());
    for (size_t r = 0; r < items.size(); ++r) items[r] = keyed[r].second;
  }

  struct Candidate {
    int64_t offset;
    int rank;  // in order of preference
  };

  // The blocks that may be placed next, above `from`, or at `from` with at least this rank; false
  // if some unplaced block can no longer be placed without a gap below it.
  bool find_candidates(const std::vector<int>& items, int64_t from, int from_rank,
                       std::vector<Candidate>& candidates, bool& done) const {
    // A block is not placed if another unplaced block would fit below it: that one must come first.
    int64_t roof = kNone;
    for (int i : items)
      if (!placed_[i]) roof = std::min(roof, lowest_[i] + items_[i].bytes);
    done = roof == kNone;
    for (int rank = 0; rank < static_cast<int>(items.size()); ++rank) {
      const int i = items[rank];
      if (placed_[i]) continue;
      const int64_t offset = lowest_[i];
      if (offset < from || (offset == from && rank < from_rank)) {
        if (!can_be_raised(i, from)) return false;
      } else if (offset < roof) {
        candidates.push_back({offset, rank});
      }
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.rank < b.rank;
    });
    return true;
  }

  // A block that was skipped needs a later block below it.
  bool can_be_raised(int i, int64_t from) const {
    const int64_t roof = lowest_[i] + items_[i].bytes;
    return std::any_of(overlaps_[i].begin(), overlaps_[i].end(),
                       [&](int j) { return !placed_[j] && std::max(lowest_[j], from) < roof; });
  }

  Fit place_next(const std::vector<int>& items, int begin, int end, int64_t from, int from_rank) {
    work_left_ -= static_cast<int64_t>(items.size());
    if (work_left_ <= 0) return Fit::unknown;
    std::vector<Candidate> candidates;
    bool done = false;
    if (!find_candidates(items, from, from_rank, candidates, done)) return Fit::never;
    if (done) return Fit::fits;
    for (const Candidate& candidate : candidates) {
      const int i = items[candidate.rank];
      const size_t mark = undo_.size();
      place(i);
      Fit fit = Fit::never;
      if (can_fit(begin, end, candidate.offset)) fit = place_rest(items, i, begin, end, candidate);
      take_back(i, mark);
      if (fit != Fit::never) return fit;
    }
    return Fit::never;
  }

  Fit place_rest(const std::vector<int>& items, int placed, int begin, int end,
                 const Candidate& at) {
    const Item& item = items_[placed];
    const bool wide = !apart_[placed].empty();
    for (int s = item.begin; s + 1 < item.end; ++s) --crossing_[s];
    for (int j : apart_[placed])
      if (!placed_[j]) cross(placed, j, -1);
    std::vector<int> cuts = {begin};
    for (int s = wide ? begin : item.begin; s + 1 < (wide ? end : item.end); ++s)
      if (crossing_[s] == 0) cuts.push_back(s + 1);
    cuts.push_back(end);
    const Fit fit = cuts.size() == 2 ? place_next(items, begin, end, at.offset, at.rank)
                                     : search_parts(items, cuts, at.offset);
    for (int j : apart_[placed])
      if (!placed_[j]) cross(placed, j, 1);
    for (int s = item.begin; s + 1 < item.end; ++s) ++crossing_[s];
    return fit;
  }

  // Whether in every section the unplaced bytes fit above the lowest free offset.
  bool can_fit(int begin, int end, int64_t from) {
    work_left_ -= end - begin;
    for (int s = begin; s < end; ++s)
      if (to_place_[s] > 0 && std::max(floor_[s], from) + to_place_[s] > capacity_) return false;
    return std::all_of(cliques_.begin(), cliques_.end(), [&](const std::vector<int>& clique) {
      return can_fit(clique, begin, end, from);
    });
  }
  // The same for a clique, if its unplaced blocks are all in this part.
  bool can_fit(const std::vector<int>& clique, int begin, int end, int64_t from) {
    work_left_ -= std::ssize(clique);
    int64_t rest = 0, floor = kNone;
    for (int i : clique) {
      if (placed_[i]) continue;
      if (items_[i].begin < begin || items_[i].end > end) return true;
      rest += items_[i].bytes;
      floor = std::min(floor, lowest_[i]);
    }
    return rest == 0 || std::max(floor, from) + rest <= capacity_;
  }

  void place(int i) {
    const Item& item = items_[i];
    const int64_t top = lowest_[i] + item.bytes;
    placed_[i] = true;
    offsets_[i] = lowest_[i];
    for (int s = item.begin; s < item.end; ++s) to_place_[s] -= item.bytes;
    mark_changed(i);
    work_left_ -= std::ssize(overlaps_[i]);
    for (int j : overlaps_[i]) {
      if (placed_[j] || lowest_[j] >= top) continue;
      mark_changed(j);
      change(lowest_[j], top);
    }
    for (int s : changed_) {
      is_changed_[s] = false;
      int64_t floor = kNone;
      for (int j : inside_[s])
        if (!placed_[j]) floor = std::min(floor, lowest_[j]);
      work_left_ -= std::ssize(inside_[s]);
      if (floor != floor_[s]) change(floor_[s], floor);
    }
    changed_.clear();
  }

  // Marks the sections whose floor is the block's lowest offset.
  void mark_changed(int i) {
    for (int s = items_[i].begin; s < items_[i].end; ++s) {
      if (floor_[s] != lowest_[i] || is_changed_[s]) continue;
      is_changed_[s] = true;
      changed_.push_back(s);
    }
  }

  void change(int64_t& value, int64_t to) {
    undo_.emplace_back(&value, value);
    value = to;
  }

  void take_back(int i, size_t mark) {
    placed_[i] = false;
    for (int s = items_[i].begin; s < items_[i].end; ++s) to_place_[s] += items_[i].bytes;
    for (; undo_.size() > mark; undo_.pop_back()) *undo_.back().first = undo_.back().second;
  }

  const int64_t capacity_;
  int sections_ = 0;
  std::vector<Item> items_;
  std::vector<std::vector<int>> inside_;    // by section: its items
  std::vector<std::vector<int>> overlaps_;  // by item: those in conflict with it
  std::vector<std::vector<int>> apart_;     // subset of these without a common section
  const Cliques cliques_;
  Preference preference_ = Preference::steps_area_load;
  int64_t work_left_ = 0;

  // State of the search. By item: the top of the placed blocks below it (its offset if it is placed
  // next).
  std::vector<int64_t> lowest_, offsets_;
  std::vector<bool> placed_;
  // By section: bytes of unplaced items, the lowest of their `lowest_`, number of items that extend
  // into the next section.
  std::vector<int64_t> to_place_, floor_;
  std::vector<int> crossing_;
  std::vector<std::pair<int64_t*, int64_t>> undo_;
  std::vector<int> changed_;
  std::vector<bool> is_changed_;
};

}  // namespace

FitResult fit_offsets(const std::vector<Block>& blocks, int64_t capacity_bytes, int64_t work,
                      const Conflicts& conflicts, const Cliques& cliques) {
  // Sizes are divided by their greatest common divisor, so that the search tries whole units only.
  // Empty blocks stay at 0.
  int64_t unit = 0;
  for (const Block& block : blocks) unit = std::gcd(unit, block.bytes);
  std::vector<Block> filled;
  std::vector<int> place(blocks.size(), -1);  // index among the nonempty blocks
  Conflicts between;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes == 0) continue;
    place[i] = static_cast<int>(filled.size());
    filled.push_back(blocks[i]);
    filled.back().bytes /= unit;
    if (conflicts.empty()) continue;
    std::vector<bool>& row = between.emplace_back();
    for (size_t j = 0; j < i; ++j)
      if (blocks[j].bytes > 0) row.push_back(conflicts[i][j]);
  }
  Cliques sets = cliques;
  for (std::vector<int>& set : sets) {
    std::erase_if(set, [&](int i) { return place[static_cast<size_t>(i)] < 0; });
    for (int& i : set) i = place[static_cast<size_t>(i)];
  }
  FitResult result;
  if (filled.empty()) {
    result.fit = Fit::fits;
    result.offsets.assign(blocks.size(), 0);
    return result;
  }
  FitSearch search(filled, capacity_bytes / unit, between, std::move(sets));
  result = search.run(work);
  if (result.fit != Fit::fits) return result;
  const std::vector<int64_t> found = std::move(result.offsets);
  result.offsets.assign(blocks.size(), 0);
  for (size_t i = 0, f = 0; i < blocks.size(); ++i)
    if (blocks[i].bytes > 0) result.offsets[i] = found[f++] * unit;
  return result;
}

}  // namespace heddle::arena
