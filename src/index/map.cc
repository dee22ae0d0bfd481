#include "index/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace heddle::index {

Map compose(const Map& outer, const Map& inner) {
  HEDDLE_CHECK(outer.domain.size() == inner.results.size());
  Map map{inner.domain, {}};
  for (const Expr& result : outer.results)
    map.results.push_back(substitute(result, inner.results, inner.domain));
  return map;
}

Map identity(const std::vector<int64_t>& extents) {
  Map map{extents, {}};
  for (size_t i = 0; i < extents.size(); ++i)
    map.results.push_back(Expr::digit(static_cast<int>(i)));
  return map;
}

Expr linearize(const std::vector<Expr>& coordinates, const std::vector<int64_t>& extents) {
  Expr linear;
  for (size_t i = 0; i < extents.size(); ++i) linear = linear * extents[i] + coordinates[i];
  return linear;
}

Map reshape(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  Expr linear = linearize(identity(from).results, from);
  Map map{from, std::vector<Expr>(to.size())};
  int64_t stride = 1;
  for (size_t i = to.size(); i-- > 0;) {
    Expr shifted = floor_div(linear, std::max<int64_t>(stride, 1), from);
    map.results[i] = i == 0 ? shifted : mod(shifted, std::max<int64_t>(to[i], 1), from);
    stride *= to[i];
  }
  return map;
}

namespace {

Interval whole(int64_t extent) { return {Expr(0), extent}; }

void note(std::vector<std::string>* widened, size_t digit, const char* why, const Expr& x) {
  if (widened)
    widened->push_back(fmt::format("digit {} widened: {} in {}", digit, why, to_string(x)));
}

// The interval of values of an expression: offset in outer variables and extent.
bool cover(const Expr& x, const Region& iterated, const std::vector<int64_t>& outer,
           Interval* result, const char** why) {
  Interval sum{Expr(x.constant()), 1};
  for (const Term& term : x.terms()) {
    Interval part;
    switch (term.atom.kind) {
      case Atom::Kind::digit:
        part = iterated.at(term.atom.id);
        break;
      case Atom::Kind::runtime:
        *why = "run-time value";
        return false;
      case Atom::Kind::quotient:
      case Atom::Kind::remainder: {
        Interval inner;
        if (!cover(*term.atom.inner, iterated, outer, &inner, why)) return false;
        int64_t by = term.atom.by;
        // inner.offset = by·A + B: fine if B + extent - 1 stays inside one cell, or B = 0.
        Expr rest = mod(inner.offset, by, outer);
        Range range = bounds(rest, outer);
        bool quotient = term.atom.kind == Atom::Kind::quotient;
        if (range.high + inner.extent - 1 < by) {
          part = quotient ? Interval{floor_div(inner.offset, by, outer), 1}
                          : Interval{rest, inner.extent};
        } else if (rest == Expr(0) && inner.extent % by == 0) {
          part = quotient ? Interval{floor_div(inner.offset, by, outer), inner.extent / by}
                          : Interval{Expr(0), by};
        } else if (!quotient) {
          part = {Expr(0), by};
        } else {
          *why = "digits that do not line up";
          return false;
        }
        break;
      }
    }
    int64_t factor = term.factor;
    sum.extent += (factor > 0 ? factor : -factor) * (part.extent - 1);
    sum.offset = sum.offset + part.offset * factor;
    if (factor < 0) sum.offset = sum.offset + Expr(factor * (part.extent - 1));
  }
  *result = sum;
  return true;
}

// Clips to [0, extent) if the bounds allow it; else leaves the interval (sound: only larger).
Interval clip(Interval interval, int64_t extent, const std::vector<int64_t>& outer) {
  Range range = bounds(interval.offset, outer);
  if (range.low == range.high) {
    int64_t low = std::max<int64_t>(range.low, 0);
    int64_t high = std::min(range.low + interval.extent, extent);
    return {Expr(low), std::max<int64_t>(high - low, 0)};
  }
  if (interval.extent >= extent) return whole(extent);
  return interval;
}

}  // namespace

Region image(const Map& map, const Region& iterated, const std::vector<int64_t>& outer,
             const std::vector<int64_t>& target, std::vector<std::string>* widened) {
  Region region(target.size());
  for (size_t i = 0; i < target.size(); ++i) {
    const char* why = "";
    Interval interval;
    if (cover(map.results[i], iterated, outer, &interval, &why)) {
      region[i] = clip(interval, target[i], outer);
    } else {
      note(widened, i, why, map.results[i]);
      region[i] = whole(target[i]);
    }
  }
  return region;
}

Region hull(const Region& a, const Region& b, const std::vector<int64_t>& outer,
            const std::vector<int64_t>& target, std::vector<std::string>* widened) {
  Region region(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].extent == 0 || b[i].extent == 0) {
      region[i] = a[i].extent == 0 ? b[i] : a[i];
      continue;
    }
    Expr difference = b[i].offset - a[i].offset;
    if (!difference.is_constant()) {
      if (a[i].extent < target[i] && b[i].extent < target[i])
        note(widened, i, "offsets differ", difference);
      region[i] = whole(target[i]);
      continue;
    }
    int64_t low = std::min<int64_t>(0, difference.constant());
    int64_t high = std::max(a[i].extent, difference.constant() + b[i].extent);
    region[i] = clip({a[i].offset + Expr(low), high - low}, target[i], outer);
  }
  return region;
}

Decision contains(const Region& outer_region, const Region& inner,
                  const std::vector<int64_t>& outer) {
  for (size_t i = 0; i < outer_region.size(); ++i) {
    if (inner[i].extent == 0) continue;
    Expr difference = inner[i].offset - outer_region[i].offset;
    Range range = bounds(difference, outer);
    if (range.low >= 0 && range.high + inner[i].extent <= outer_region[i].extent) continue;
    if (range.high < 0 || range.low + inner[i].extent > outer_region[i].extent)
      return Decision::no("outside", "digit {} lies outside: {} elements at {}", i, inner[i].extent,
                          to_string(difference));
    return Decision::no("unknown", "digit {}: {} elements at {} cannot be shown to lie in {}", i,
                        inner[i].extent, to_string(difference), outer_region[i].extent);
  }
  return Decision::yes();
}

Region sweep(const Region& region, int var, int64_t n, const std::vector<int64_t>& target) {
  Region result = region;
  for (size_t i = 0; i < region.size(); ++i) {
    const Expr& offset = region[i].offset;
    if (!offset.uses(var)) continue;
    int64_t factor = offset.factor_of(var);
    Expr rest = offset - Expr::digit(var) * factor;
    if (factor == 0 || rest.uses(var)) {  // inside a quotient
      result[i] = whole(target[i]);
      continue;
    }
    int64_t span = (factor > 0 ? factor : -factor) * (n - 1);
    result[i] = {factor > 0 ? rest : rest - Expr(span), region[i].extent + span};
    if (result[i].extent >= target[i]) result[i] = whole(target[i]);
  }
  return result;
}

int64_t volume(const Region& region) {
  int64_t product = 1;
  for (const Interval& interval : region) product *= interval.extent;
  return product;
}

std::string to_string(const Region& region, const std::vector<std::string>& names) {
  std::string text = "[";
  for (size_t i = 0; i < region.size(); ++i) {
    text += fmt::format("{}{}+:{}", i ? ", " : "", to_string(region[i].offset, names),
                        region[i].extent);
  }
  return text + "]";
}

}  // namespace heddle::index
