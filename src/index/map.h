// Maps between index domains, regions of them, and the containment test: yes, or no with a reason
// (also if it cannot be decided).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/decision.h"
#include "index/expr.h"

namespace heddle::index {

// From the digits of a domain to coordinates in another one: one expression per coordinate.
struct Map {
  std::vector<int64_t> domain;  // extents of the digits
  std::vector<Expr> results;
  bool operator==(const Map&) const = default;
};

// outer after inner: inner's results are the digits of outer's domain.
Map compose(const Map& outer, const Map& inner);
Map identity(const std::vector<int64_t>& extents);
// The row-major bijection between domains of equal volume (a reshape): from `from` to `to`.
Map reshape(const std::vector<int64_t>& from, const std::vector<int64_t>& to);
// Row-major linear index of a point of `extents` given by coordinates.
Expr linearize(const std::vector<Expr>& coordinates, const std::vector<int64_t>& extents);

// A read happens only where low <= value < high; pads, concatenations, window edges.
struct Guard {
  Expr value;
  int64_t low = 0, high = 0;
  bool operator==(const Guard&) const = default;
};

// One dimension of a region: an offset (an expression in outer variables) and an extent.
struct Interval {
  Expr offset;
  int64_t extent = 1;
  bool operator==(const Interval&) const = default;
};
using Region = std::vector<Interval>;

// The hull of the elements that `map` reads while its digits run over `iterated` (whose offsets are
// expressions in outer variables with extents `outer`), clipped to `target`. Digits that do not
// line up are widened to the whole target digit, and the reason is appended to `widened`.
Region image(const Map& map, const Region& iterated, const std::vector<int64_t>& outer,
             const std::vector<int64_t>& target, std::vector<std::string>* widened = nullptr);
// The smallest region over both (offsets must differ by a constant, else the digit is widened).
Region hull(const Region& a, const Region& b, const std::vector<int64_t>& outer,
            const std::vector<int64_t>& target, std::vector<std::string>* widened = nullptr);
// Is `inner` inside `outer_region` for all values of the outer variables?
Decision contains(const Region& outer_region, const Region& inner,
                  const std::vector<int64_t>& outer);
// The hull over a range of one outer variable: variable `var` of extent n leaves the offsets.
Region sweep(const Region& region, int var, int64_t n, const std::vector<int64_t>& target);
int64_t volume(const Region& region);
std::string to_string(const Region& region, const std::vector<std::string>& names = {});

}  // namespace heddle::index
