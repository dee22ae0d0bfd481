// Extent: the extent of a dimension as a linear expression of extents known at run time: a sum of
// fixed multiples of them and a constant, "2*batch + past + 1".
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace heddle::tensor {

struct Extent {
  int64_t constant = 0;
  std::vector<std::pair<int64_t, int64_t>> terms;  // symbol, factor; ascending, no factor is 0

  static Extent of_symbol(int64_t symbol) { return {0, {{symbol, 1}}}; }
  bool is_constant() const { return terms.empty(); }
  int64_t at(std::span<const int64_t> extents) const;  // by symbol
  Extent plus(const Extent& other) const;
  Extent times(int64_t factor) const;
  // The greatest common divisor of the constant and all factors, at least 1; 1 for a constant.
  int64_t common_factor() const;
  Extent divided_by(int64_t divisor) const;  // Precondition: divides common_factor()
  auto operator<=>(const Extent&) const = default;
};

std::string to_string(const Extent& extent, std::span<const std::string> names);

}  // namespace heddle::tensor
