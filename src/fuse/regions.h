// Private to fuse: sets of numbers that can be united.
#pragma once

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace heddle::fuse {

class Regions {
 public:
  explicit Regions(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }

  // The representative of the number's set.
  int of(int number) {
    int root = number;
    while (parent_[static_cast<size_t>(root)] != root) root = parent_[static_cast<size_t>(root)];
    while (parent_[static_cast<size_t>(number)] != root)
      number = std::exchange(parent_[static_cast<size_t>(number)], root);
    return root;
  }

  void unite(int a, int b) { parent_[static_cast<size_t>(of(a))] = of(b); }
  void unite(const std::vector<int>& numbers) {
    for (int number : numbers) unite(number, numbers[0]);
  }

 private:
  std::vector<int> parent_;
};

}  // namespace heddle::fuse
