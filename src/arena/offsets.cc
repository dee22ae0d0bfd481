#include "arena/offsets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "arena/fit_offsets.h"

namespace heddle::arena {
namespace {

// With more blocks the search would be too deep.
constexpr size_t kMostSearched = 4000;
// Large blocks matter most: limits on blocks considered, conflicts tried, and cliques kept.
constexpr size_t kMostInCliques = 1000, kMostCliquesTried = 256, kMostCliques = 32;

enum class Gap { smallest, lowest };

// Places blocks one after another, each into a gap between placed blocks that conflict with it.
class Greedy {
 public:
  Greedy(const std::vector<Block>& blocks, const Conflicts& conflicts)
      : blocks_(blocks), conflicts_(conflicts) {}

  // Stops with a height of max as soon as the arena is not lower than `limit`.
  Offsets place(const std::vector<int>& order, Gap choice, int64_t limit) {
    Offsets result;
    result.offsets.assign(blocks_.size(), 0);
    placed_.clear();
    for (int i : order) {
      const Block& block = blocks_[i];
      const int64_t offset = find(i, choice, result.height_bytes);
      result.offsets[i] = offset;
      result.height_bytes = std::max(result.height_bytes, offset + block.bytes);
      if (result.height_bytes >= limit) {
        result.height_bytes = std::numeric_limits<int64_t>::max();
        return result;
      }
      const Placed placed{offset, offset + block.bytes, i};
      placed_.insert(
          std::upper_bound(placed_.begin(), placed_.end(), placed,
                           [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
          placed);
    }
    return result;
  }

 private:
  struct Placed {
    int64_t begin, end;
    int block;
  };

  bool meet(int a, int b) const {
    if (!conflicts_.empty()) return conflicts_[a][b];
    return blocks_[a].first <= blocks_[b].last && blocks_[b].first <= blocks_[a].last;
  }

  // The space above the top conflicting block counts as a gap that may be extended: it is used if
  // no other gap fits, or if it is the smallest that fits.
  int64_t find(int number, Gap choice, int64_t height) const {
    const Block& block = blocks_[number];
    int64_t at = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
    for (const Placed& placed : placed_) {
      if (!meet(number, placed.block)) continue;
      const int64_t gap = placed.begin - at;
      if (gap >= block.bytes && gap < best_gap) {
        best = at;
        best_gap = gap;
        if (choice == Gap::lowest) return best;
      }
      at = std::max(at, placed.end);
    }
    if (best < 0) return at;
    // There may be room above the last conflict, up to the top of the arena.
    if (const int64_t gap = height - at; gap >= block.bytes && gap < best_gap) return at;
    return best;
  }

  const std::vector<Block>& blocks_;
  const Conflicts& conflicts_;
  std::vector<Placed> placed_;  // by begin
};

// Blocks are placed by decreasing weight; ties by size, then in the given order.
struct Key {
  const char* name;
  std::vector<double> weight;  // by block
};

// By block: the most bytes live at a step of its lifetime, a measure of scarcity.
std::vector<double> loads(const std::vector<Block>& blocks) {
  int64_t steps = 0;
  for (const Block& block : blocks) steps = std::max(steps, block.last + 1);
  std::vector<int64_t> live(static_cast<size_t>(steps) + 1);
  for (const Block& block : blocks) {
    live[block.first] += block.bytes;
    live[block.last + 1] -= block.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::vector<double> result;
  for (const Block& block : blocks)
    result.push_back(static_cast<double>(
        *std::max_element(live.begin() + block.first, live.begin() + block.last + 1)));
  return result;
}

std::vector<Key> keys(const std::vector<Block>& blocks) {
  std::vector<Key> result = {
      {"size", {}}, {"load", loads(blocks)}, {"lifetime", {}}, {"area", {}}, {"first use", {}}};
  for (const Block& block : blocks) {
    const auto bytes = static_cast<double>(block.bytes);
    const auto steps = static_cast<double>(block.last - block.first + 1);
    result[0].weight.push_back(bytes);
    result[2].weight.push_back(steps);
    result[3].weight.push_back(bytes * steps);
    result[4].weight.push_back(-static_cast<double>(block.first));
  }
  return result;
}

std::vector<int> sorted(const std::vector<Block>& blocks, const Key& key) {
  std::vector<int> order;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].bytes > 0) order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (key.weight[a] != key.weight[b]) return key.weight[a] > key.weight[b];
    return blocks[a].bytes > blocks[b].bytes;
  });
  return order;
}

// Searches for arenas lower than the best one: first at the bound, where networks nearly always
// fit, then by bisection of the open range.
void search(const std::vector<Block>& blocks, int64_t bound, int64_t work,
            const Conflicts& conflicts, const Cliques& cliques, Offsets& best) {
  int64_t unit = 0;  // granularity of heights
  for (const Block& block : blocks) unit = std::gcd(unit, block.bytes);
  int64_t open = bound;    // lower heights have all been tried
  bool all_proved = true;  // and are proved impossible
  int64_t tried = bound;
  while (open < best.height_bytes && work > 0) {
    FitResult result =
        fit_offsets(blocks, tried, std::max<int64_t>(work / 2, 1'000'000), conflicts, cliques);
    work -= result.work;
    if (result.fit == Fit::fits) {
      best.offsets = std::move(result.offsets);
      best.height_bytes = 0;
      for (size_t i = 0; i < blocks.size(); ++i)
        best.height_bytes = std::max(best.height_bytes, best.offsets[i] + blocks[i].bytes);
      best.found_by = "exact search";
    } else {
      all_proved = all_proved && result.fit == Fit::never;
      open = tried + unit;
    }
    tried = open + (best.height_bytes - open) / 2 / unit * unit;
  }
  best.optimal = open >= best.height_bytes && all_proved;
}

int64_t bytes_of(const std::vector<Block>& blocks, const std::vector<int>& set) {
  int64_t bytes = 0;
  for (int i : set) bytes += blocks[i].bytes;
  return bytes;
}

int64_t most_at_a_step(const std::vector<Block>& blocks) {
  std::map<int64_t, int64_t> change;  // by step
  for (const Block& block : blocks) {
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  int64_t live = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, live += bytes);
  return most;
}

}  // namespace

Cliques find_cliques(const std::vector<Block>& blocks, const Conflicts& conflicts) {
  std::vector<int> order;
  for (size_t i = 0; i < conflicts.size(); ++i)
    if (blocks[i].bytes > 0) order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return blocks[a].bytes > blocks[b].bytes; });
  if (order.size() > kMostInCliques) order.resize(kMostInCliques);
  // Conflicting pairs with disjoint lifetimes, the largest first.
  std::vector<std::pair<int64_t, std::pair<int, int>>> pairs;
  for (size_t a = 0; a < order.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const int i = order[a], j = order[b];
      const bool meet = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      if (conflicts[i][j] && !meet) pairs.push_back({-blocks[i].bytes - blocks[j].bytes, {i, j}});
    }
  std::sort(pairs.begin(), pairs.end());
  if (pairs.size() > kMostCliquesTried) pairs.resize(kMostCliquesTried);
  std::set<std::vector<int>> found;
  for (const auto& [bytes, pair] : pairs) {
    std::vector<int> clique = {pair.first, pair.second};
    for (int i : order)
      if (std::all_of(clique.begin(), clique.end(),
                      [&](int member) { return member != i && conflicts[i][member]; }))
        clique.push_back(i);
    std::sort(clique.begin(), clique.end());
    found.insert(std::move(clique));
  }
  Cliques cliques(found.begin(), found.end());
  std::stable_sort(cliques.begin(), cliques.end(), [&](const auto& a, const auto& b) {
    return bytes_of(blocks, a) > bytes_of(blocks, b);
  });
  if (cliques.size() > kMostCliques) cliques.resize(kMostCliques);
  return cliques;
}

int64_t lower_bound_bytes(const std::vector<Block>& blocks, const Conflicts& conflicts) {
  int64_t bound = most_at_a_step(blocks);
  const Cliques cliques = find_cliques(blocks, conflicts);
  if (!cliques.empty()) bound = std::max(bound, bytes_of(blocks, cliques[0]));
  return bound;
}

Offsets assign_offsets(const std::vector<Block>& blocks, int64_t work, const Conflicts& conflicts) {
  const Cliques cliques = find_cliques(blocks, conflicts);
  int64_t bound = most_at_a_step(blocks);
  if (!cliques.empty()) bound = std::max(bound, bytes_of(blocks, cliques[0]));
  Greedy greedy(blocks, conflicts);
  Offsets best;
  best.offsets.assign(blocks.size(), 0);
  best.height_bytes = std::numeric_limits<int64_t>::max();
  for (const Key& key : keys(blocks)) {
    const std::vector<int> order = sorted(blocks, key);
    for (const Gap choice : {Gap::smallest, Gap::lowest}) {
      Offsets tried = greedy.place(order, choice, best.height_bytes);
      if (tried.height_bytes >= best.height_bytes) continue;
      best = std::move(tried);
      best.found_by = key.name;
      best.optimal = best.height_bytes == bound;
      if (best.optimal) return best;
    }
  }
  if (blocks.size() <= kMostSearched) search(blocks, bound, work, conflicts, cliques, best);
  return best;
}

Status check_offsets(const std::vector<Block>& blocks, const Offsets& plan,
                     const Conflicts& conflicts) {
  if (plan.offsets.size() != blocks.size())
    return user_error("{} offsets for {} blocks", plan.offsets.size(), blocks.size());
  struct Event {
    int64_t step;
    bool begins;  // at equal steps, ends come first
    size_t block;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t offset = plan.offsets[i];
    if (offset < 0 || offset > plan.height_bytes - blocks[i].bytes)
      return user_error("block {} of {} bytes at {} is outside of {} bytes", i, blocks[i].bytes,
                        offset, plan.height_bytes);
    if (blocks[i].bytes == 0) continue;
    events.push_back({blocks[i].first, true, i});
    events.push_back({blocks[i].last + 1, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.begins < b.begins;
  });
  for (size_t a = 0; a < conflicts.size(); ++a)
    for (size_t b = 0; b < a; ++b)
      if (conflicts[a][b] && plan.offsets[a] < plan.offsets[b] + blocks[b].bytes &&
          plan.offsets[b] < plan.offsets[a] + blocks[a].bytes)
        return user_error("blocks {} and {} share bytes", a, b);
  std::map<int64_t, size_t> live;  // by offset
  for (const Event& event : events) {
    const int64_t begin = plan.offsets[event.block], end = begin + blocks[event.block].bytes;
    if (!event.begins) {
      live.erase(begin);
      continue;
    }
    const auto above = live.lower_bound(begin);
    if (above != live.end() && above->first < end)
      return user_error("blocks {} and {} share bytes", event.block, above->second);
    if (above != live.begin()) {
      const auto& [offset, below] = *std::prev(above);
      if (offset + blocks[below].bytes > begin)
        return user_error("blocks {} and {} share bytes", event.block, below);
    }
    live.emplace(begin, event.block);
  }
  return {};
}

}  // namespace heddle::arena
