#include "plan/offsets.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace heddle::plan {
namespace {

constexpr int64_t kSearchWork = 24'000'000;

enum class Gap { smallest, lowest };

// Places blocks one after the other, each into a gap between the placed blocks that live with it.
class Greedy {
 public:
  explicit Greedy(const std::vector<Block>& blocks) : blocks_(blocks) {}

  // Gives up, with a height of max, once the arena is no lower than `limit`.
  Offsets place(const std::vector<int>& order, Gap choice, int64_t limit) {
    Offsets result;
    result.offsets.assign(blocks_.size(), 0);
    placed_.clear();
    for (int i : order) {
      const Block& block = blocks_[i];
      const int64_t offset = find(block, choice, result.height_bytes);
      result.offsets[i] = offset;
      result.height_bytes = std::max(result.height_bytes, offset + block.bytes);
      if (result.height_bytes >= limit) {
        result.height_bytes = std::numeric_limits<int64_t>::max();
        return result;
      }
      const Placed placed{offset, offset + block.bytes, block.first, block.last};
      placed_.insert(
          std::upper_bound(placed_.begin(), placed_.end(), placed,
                           [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
          placed);
    }
    return result;
  }

 private:
  struct Placed {
    int64_t begin, end, first, last;
  };

  // The arena's top counts as a gap that must be stretched: it is taken where no other fits, but
  // where what is missing there is least.
  int64_t find(const Block& block, Gap choice, int64_t height) const {
    int64_t at = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
    for (const Placed& placed : placed_) {
      if (placed.last < block.first || placed.first > block.last) continue;
      const int64_t gap = placed.begin - at;
      if (gap >= block.bytes && gap < best_gap) {
        best = at;
        best_gap = gap;
        if (choice == Gap::lowest) return best;
      }
      at = std::max(at, placed.end);
    }
    if (best < 0) return at;
    // Above the last conflict there may be room as well, up to the top of the arena.
    if (const int64_t gap = height - at; gap >= block.bytes && gap < best_gap) return at;
    return best;
  }

  const std::vector<Block>& blocks_;
  std::vector<Placed> placed_;  // by begin
};

// What weighs most is placed first; ties go by size, then by the order of the blocks.
struct Key {
  const char* name;
  std::vector<double> weight;  // by block
};

// Most bytes live at a step of each block's lifetime: where it is tight.
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

// Where the bound is not met: moves a block that reaches the top of the arena to the front of the
// order, or to a place drawn by a fixed sequence, and keeps what is no higher. The number of tries
// falls with the square of the blocks, so that the work is bounded.
void search(Greedy& greedy, const std::vector<Block>& blocks, int64_t bound, std::vector<int> order,
            Offsets& best) {
  const auto count = static_cast<int64_t>(order.size());
  const int64_t tries =
      count < 3 ? 0 : std::clamp<int64_t>(kSearchWork / (count * count), 10, 2000);
  uint64_t state = 0x9e3779b97f4a7c15u;
  auto draw = [&](int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(n));
  };
  for (int64_t i = 0; i < tries && best.height_bytes > bound; ++i) {
    std::vector<int> tried = order;
    std::vector<int64_t> tops;  // places in the order of those that reach the top
    for (int64_t p = 0; p < count; ++p)
      if (best.offsets[tried[p]] + blocks[tried[p]].bytes == best.height_bytes) tops.push_back(p);
    int64_t from = tops[static_cast<size_t>(draw(static_cast<int64_t>(tops.size())))];
    if (draw(4) == 0) from = draw(count);
    const int64_t to = draw(3) == 0 ? 0 : draw(std::max<int64_t>(from, 1));
    std::rotate(tried.begin() + to, tried.begin() + from, tried.begin() + from + 1);
    Offsets plan =
        greedy.place(tried, draw(2) == 0 ? Gap::smallest : Gap::lowest, best.height_bytes + 1);
    if (plan.height_bytes > best.height_bytes) continue;
    const char* name = plan.height_bytes < best.height_bytes ? "search" : best.order;
    best = std::move(plan);
    best.order = name;
    order = std::move(tried);
  }
}

}  // namespace

int64_t lower_bound_bytes(const std::vector<Block>& blocks) {
  std::map<int64_t, int64_t> change;  // by step
  for (const Block& block : blocks) {
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  int64_t live = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, live += bytes);
  return most;
}

Offsets assign_offsets(const std::vector<Block>& blocks) {
  const int64_t bound = lower_bound_bytes(blocks);
  Greedy greedy(blocks);
  Offsets best;
  best.offsets.assign(blocks.size(), 0);
  best.height_bytes = std::numeric_limits<int64_t>::max();
  std::vector<int> best_order;
  for (const Key& key : keys(blocks)) {
    const std::vector<int> order = sorted(blocks, key);
    for (const Gap choice : {Gap::smallest, Gap::lowest}) {
      Offsets tried = greedy.place(order, choice, best.height_bytes);
      if (tried.height_bytes >= best.height_bytes) continue;
      best = std::move(tried);
      best.order = key.name;
      best_order = order;
      if (best.height_bytes == bound) return best;
    }
  }
  search(greedy, blocks, bound, std::move(best_order), best);
  return best;
}

}  // namespace heddle::plan
