// Extent: the extent of a dimension as an expression of extents known at run time, its symbols: a
// sum of fixed multiples of them, of quotients of such sums, and a constant: "2*batch + past + 1",
// "(height + 1)/2".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::tensor {

struct Extent {
  using Terms = std::vector<std::pair<int64_t, int64_t>>;  // symbol, factor
  // (constant + terms) / divisor, rounded down. All numbers but the divisor are from 0 to divisor
  // - 1, some factor is not 0, and nothing divides all factors and the divisor: equal quotients are
  // equal.
  struct Quotient {
    int64_t constant = 0;
    Terms terms = {};
    int64_t divisor = 1;
    auto operator<=>(const Quotient&) const = default;
  };
  int64_t constant = 0;
  Terms terms = {};                                          // ascending, no factor is 0
  std::vector<std::pair<Quotient, int64_t>> quotients = {};  // likewise

  static Extent of_symbol(int64_t symbol) { return {0, {{symbol, 1}}}; }
  bool is_constant() const { return terms.empty() && quotients.empty(); }
  int64_t at(std::span<const int64_t> extents) const;  // by symbol; none is negative
  Extent plus(const Extent& other) const;
  Extent times(int64_t factor) const;
  // The greatest common divisor of the constant and all factors, at least 1; 1 for a constant.
  int64_t common_factor() const;
  Extent divided_by(int64_t divisor) const;  // Precondition: divides common_factor()
  // Rounded down; nothing: it has no such form, as it would be a quotient of other quotients.
  // Precondition: divisor > 0.
  std::optional<Extent> quotient(int64_t divisor) const;
  // With expressions in place of symbols; nothing: as for quotient().
  std::optional<Extent> with(std::span<const Extent> instead) const;
  std::vector<int64_t> symbols() const;  // ascending
  auto operator<=>(const Extent&) const = default;
};

// The least extents, from these on, at which the expression is at least `wanted`, as far as none of
// them goes above its bound.
void raise_to(const Extent& extent, int64_t wanted, std::span<const int64_t> bounds,
              std::span<int64_t> extents);

std::string to_string(const Extent& extent, std::span<const std::string> names);
// "2*$0+($1+1)/2-1", where $1 is symbol 1, and back; nothing: it is no such text.
std::string to_text(const Extent& extent);
std::optional<Extent> read_extent(std::string_view text);

}  // namespace heddle::tensor
