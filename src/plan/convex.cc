#include "plan/convex.h"

#include <algorithm>
#include <queue>
#include <set>

#include "base/check.h"

namespace heddle::plan {
namespace {

// Starts with one region per node; merges two adjacent regions if no other path leads from one to
// the other.
class Contractor {
 public:
  Contractor(const std::vector<std::vector<size_t>>& before, const std::vector<int>& label)
      : label_(label), next_(before.size()), previous_(before.size()) {
    for (size_t n = 0; n < before.size(); ++n) {
      home_.push_back(n);
      for (size_t p : before[n]) {
        HEDDLE_CHECK(p != n);
        next_[p].insert(n);
        previous_[n].insert(p);
      }
    }
  }

  std::vector<size_t> run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t r = 0; r < home_.size(); ++r)
        while (home_[r] == r && grow(r)) changed = true;
    }
    return numbered();
  }

 private:
  bool grow(size_t region) {
    if (label_[region] < 0) return false;
    for (size_t n : next_[region])
      if (label_[n] == label_[region] && !leads_around(region, n)) {
        contract(region, n);
        return true;
      }
    return false;
  }

  // Whether a path leads from `from` to `to` through a third region. Visits every region once.
  bool leads_around(size_t from, size_t to) const {
    std::vector<bool> seen(home_.size());
    std::vector<size_t> stack;
    for (size_t n : next_[from])
      if (n != to) stack.push_back(n);
    while (!stack.empty()) {
      const size_t at = stack.back();
      stack.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      for (size_t n : next_[at]) {
        if (n == to) return true;
        stack.push_back(n);
      }
    }
    return false;
  }

  void contract(size_t kept, size_t gone) {
    home_[gone] = kept;
    next_[kept].erase(gone);
    previous_[gone].erase(kept);
    for (size_t n : next_[gone]) {
      previous_[n].erase(gone);
      previous_[n].insert(kept);
      next_[kept].insert(n);
    }
    for (size_t p : previous_[gone]) {
      next_[p].erase(gone);
      next_[p].insert(kept);
      previous_[kept].insert(p);
    }
    next_[gone].clear();
    previous_[gone].clear();
  }

  // In the order of their first nodes as far as the edges allow.
  std::vector<size_t> numbered() const {
    std::vector<size_t> waits, number(home_.size());
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t r = 0; r < home_.size(); ++r) {
      waits.push_back(previous_[r].size());
      if (home_[r] == r && waits[r] == 0) ready.push(r);
    }
    size_t count = 0, regions = 0;
    for (size_t r = 0; r < home_.size(); ++r) regions += home_[r] == r;
    for (; !ready.empty(); ++count) {
      const size_t r = ready.top();
      ready.pop();
      number[r] = count;
      for (size_t n : next_[r])
        if (--waits[n] == 0) ready.push(n);
    }
    HEDDLE_CHECK(count == regions, "the regions have a cycle");
    std::vector<size_t> result;
    for (size_t n = 0; n < home_.size(); ++n) result.push_back(number[home(n)]);
    return result;
  }

  size_t home(size_t n) const {
    while (home_[n] != n) n = home_[n];
    return n;
  }

  const std::vector<int>& label_;
  std::vector<size_t> home_;
  std::vector<std::set<size_t>> next_, previous_;  // of regions
};

}  // namespace

std::vector<size_t> convex_regions(const std::vector<std::vector<size_t>>& before,
                                   const std::vector<int>& label) {
  return Contractor(before, label).run();
}

}  // namespace heddle::plan
