#include "plan/ordering.h"

#include <algorithm>

namespace heddle::plan {

Ordering Ordering::predecessor(const std::vector<std::vector<size_t>>& before) {
  Ordering made;
  std::vector<size_t> tails;  // by chain
  for (size_t i = 0; i < before.size(); ++i) {
    std::vector<size_t> clock;
    size_t chain = tails.size();
    for (size_t p : before[i]) {
      const std::vector<size_t>& other = made.clock_[p];
      if (clock.size() < other.size()) clock.resize(other.size());
      for (size_t c = 0; c < other.size(); ++c) clock[c] = std::max(clock[c], other[c]);
      if (tails[made.chain_[p]] == p) chain = std::min(chain, made.chain_[p]);
    }
    if (chain == tails.size()) tails.push_back(i);
    tails[chain] = i;
    if (clock.size() <= chain) clock.resize(chain + 1);
    made.chain_.push_back(chain);
    made.place_.push_back(++clock[chain]);
    made.clock_.push_back(std::move(clock));
  }
  return made;
}

bool Ordering::runs_before(size_t first, size_t second) const {
  if (is_sequential() || first == second) return first < second;
  const std::vector<size_t>& clock = clock_[second];
  return chain_[first] < clock.size() && clock[chain_[first]] >= place_[first];
}

}  // namespace heddle::plan
