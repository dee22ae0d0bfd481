#include "index/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace heddle::index {

namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t floor_remainder(int64_t a, int64_t b) { return a - floor_quotient(a, b) * b; }
template <typename T>
int order(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

}  // namespace

int compare(const Atom& a, const Atom& b) {
  if (int c = order(a.kind, b.kind)) return c;
  if (int c = order(a.id, b.id)) return c;
  if (int c = order(a.by, b.by)) return c;
  if (!a.inner || !b.inner) return order(a.inner != nullptr, b.inner != nullptr);
  return a.inner == b.inner ? 0 : compare(*a.inner, *b.inner);
}

int compare(const Expr& a, const Expr& b) {
  if (int c = order(a.terms().size(), b.terms().size())) return c;
  for (size_t i = 0; i < a.terms().size(); ++i) {
    if (int c = compare(a.terms()[i].atom, b.terms()[i].atom)) return c;
    if (int c = order(a.terms()[i].factor, b.terms()[i].factor)) return c;
  }
  return order(a.constant(), b.constant());
}

// Collects terms and puts them into canonical order.
class ExprBuilder {
 public:
  void add(const Expr& x, int64_t factor) {
    result_.constant_ += x.constant_ * factor;
    for (const Term& term : x.terms_) add(term.atom, term.factor * factor);
  }
  void add(const Atom& atom, int64_t factor) {
    for (Term& term : result_.terms_) {
      if (compare(term.atom, atom) == 0) {
        term.factor += factor;
        return;
      }
    }
    result_.terms_.push_back({factor, atom});
  }
  Expr take() {
    std::erase_if(result_.terms_, [](const Term& t) { return t.factor == 0; });
    while (join_cells()) {
    }
    std::sort(result_.terms_.begin(), result_.terms_.end(),
              [](const Term& a, const Term& b) { return compare(a.atom, b.atom) < 0; });
    return std::move(result_);
  }

 private:
  // Whether `high` and x mod by combine: (x floordiv by)·by + x mod by = x, and ((x floordiv by)
  // mod m)·by + x mod by = x mod (by·m).
  static bool continues(const Atom& high, const Atom& low) {
    if (high.kind == Atom::Kind::quotient)
      return high.by == low.by && compare(*high.inner, *low.inner) == 0;
    if (high.kind != Atom::Kind::remainder) return false;
    const Expr& inner = *high.inner;
    return inner.constant_ == 0 && inner.terms_.size() == 1 && inner.terms_[0].factor == 1 &&
           inner.terms_[0].atom.kind == Atom::Kind::quotient &&
           continues(inner.terms_[0].atom, low);
  }

  bool join_cells() {
    std::vector<Term>& terms = result_.terms_;
    for (size_t r = 0; r < terms.size(); ++r) {
      if (terms[r].atom.kind != Atom::Kind::remainder) continue;
      for (size_t q = 0; q < terms.size(); ++q) {
        if (terms[q].factor != terms[r].factor * terms[r].atom.by ||
            !continues(terms[q].atom, terms[r].atom))
          continue;
        const Atom high = terms[q].atom, low = terms[r].atom;
        const int64_t factor = terms[r].factor;
        terms.erase(terms.begin() + static_cast<long>(std::max(q, r)));
        terms.erase(terms.begin() + static_cast<long>(std::min(q, r)));
        if (high.kind == Atom::Kind::quotient) {
          add(*low.inner, factor);
        } else {
          add(Atom{Atom::Kind::remainder, 0, high.by * low.by, {}, low.inner}, factor);
        }
        std::erase_if(terms, [](const Term& t) { return t.factor == 0; });
        return true;
      }
    }
    return false;
  }

  Expr result_;
};

Expr Expr::digit(int id) {
  Expr x;
  x.terms_.push_back({1, Atom{Atom::Kind::digit, id, 1, {}, nullptr}});
  return x;
}

Expr Expr::runtime(int id, Range range) {
  Expr x;
  x.terms_.push_back({1, Atom{Atom::Kind::runtime, id, 1, range, nullptr}});
  return x;
}

bool Expr::is_digit(int* id) const {
  if (constant_ != 0 || terms_.size() != 1 || terms_[0].factor != 1) return false;
  if (terms_[0].atom.kind != Atom::Kind::digit) return false;
  if (id) *id = terms_[0].atom.id;
  return true;
}

bool Expr::is_affine() const {
  return std::none_of(terms_.begin(), terms_.end(), [](const Term& t) {
    return t.atom.kind == Atom::Kind::quotient || t.atom.kind == Atom::Kind::remainder;
  });
}

int64_t Expr::factor_of(int digit) const {
  for (const Term& term : terms_)
    if (term.atom.kind == Atom::Kind::digit && term.atom.id == digit) return term.factor;
  return 0;
}

bool Expr::uses(int digit) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& t) {
    if (t.atom.inner) return t.atom.inner->uses(digit);
    return t.atom.kind == Atom::Kind::digit && t.atom.id == digit;
  });
}

bool Expr::uses_runtime() const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const Term& t) {
    return t.atom.inner ? t.atom.inner->uses_runtime() : t.atom.kind == Atom::Kind::runtime;
  });
}

Expr operator+(const Expr& a, const Expr& b) {
  ExprBuilder builder;
  builder.add(a, 1);
  builder.add(b, 1);
  return builder.take();
}

Expr operator*(const Expr& a, int64_t factor) {
  ExprBuilder builder;
  builder.add(a, factor);
  return builder.take();
}

bool Expr::operator==(const Expr& other) const { return compare(*this, other) == 0; }

namespace {

// x = g·y + z with 0 <= z < g, for a g that divides `by` and some factors: the digits below g do
// not affect the division. Returns y, z and g, or g = 1.
struct Cell {
  Expr high, low;
  int64_t by = 1;
};

Cell split_at_cell(const Expr& x, int64_t by, const std::vector<int64_t>& extents) {
  for (const Term& candidate : x.terms()) {
    int64_t g = std::gcd(by, candidate.factor);
    if (g <= 1) continue;
    Expr high(floor_quotient(x.constant(), g)), low(floor_remainder(x.constant(), g));
    for (const Term& term : x.terms()) {
      ExprBuilder one;
      one.add(term.atom, term.factor % g == 0 ? term.factor / g : term.factor);
      (term.factor % g == 0 ? high : low) = (term.factor % g == 0 ? high : low) + one.take();
    }
    Range range = bounds(low, extents);
    if (range.low >= 0 && range.high < g) return {high, low, g};
  }
  return {};
}

}  // namespace

// x = by·multiple + rest, where multiple takes the terms whose factor `by` divides. The rest needs
// a division only if it may leave [0, by).
Expr floor_div(const Expr& x, int64_t by, const std::vector<int64_t>& extents) {
  HEDDLE_CHECK(by > 0);
  if (by == 1) return x;
  Expr multiple(floor_quotient(x.constant_, by)), rest(floor_remainder(x.constant_, by));
  ExprBuilder whole, part;
  whole.add(multiple, 1);
  part.add(rest, 1);
  for (const Term& term : x.terms_) {
    if (term.factor % by == 0) {
      whole.add(term.atom, term.factor / by);
    } else {
      part.add(term.atom, term.factor);
    }
  }
  multiple = whole.take();
  rest = part.take();
  Range range = bounds(rest, extents);
  int64_t low = floor_quotient(range.low, by), high = floor_quotient(range.high, by);
  if (low == high) return multiple + Expr(low);
  // (a floordiv m) floordiv n = a floordiv (m n).
  if (rest.constant_ == 0 && rest.terms_.size() == 1 && rest.terms_[0].factor == 1 &&
      rest.terms_[0].atom.kind == Atom::Kind::quotient) {
    const Atom& inner = rest.terms_[0].atom;
    return multiple + floor_div(*inner.inner, inner.by * by, extents);
  }
  // A common divisor of the rest's factors and `by` cancels; the part below it cannot carry.
  if (Cell cell = split_at_cell(rest, by, extents); cell.by > 1)
    return multiple + floor_div(cell.high, by / cell.by, extents);
  Expr quotient;
  quotient.terms_.push_back(
      {1, Atom{Atom::Kind::quotient, 0, by, {}, std::make_shared<const Expr>(rest)}});
  return multiple + quotient;
}

Expr mod(const Expr& x, int64_t by, const std::vector<int64_t>& extents) {
  HEDDLE_CHECK(by > 0);
  if (by == 1) return Expr(0);
  ExprBuilder part;
  part.add(Expr(floor_remainder(x.constant_, by)), 1);
  for (const Term& term : x.terms_)
    if (term.factor % by != 0) part.add(term.atom, term.factor);
  Expr rest = part.take();
  Range range = bounds(rest, extents);
  int64_t low = floor_quotient(range.low, by), high = floor_quotient(range.high, by);
  if (low == high) return rest - Expr(low * by);
  // (a mod m) mod n = a mod n where n divides m.
  if (rest.constant_ == 0 && rest.terms_.size() == 1 && rest.terms_[0].factor == 1 &&
      rest.terms_[0].atom.kind == Atom::Kind::remainder && rest.terms_[0].atom.by % by == 0)
    return mod(*rest.terms_[0].atom.inner, by, extents);
  // A common divisor is factored out: (g a + z) mod (g n) = g (a mod n) + z, z < g.
  if (Cell cell = split_at_cell(rest, by, extents); cell.by > 1)
    return mod(cell.high, by / cell.by, extents) * cell.by + cell.low;
  Expr remainder;
  remainder.terms_.push_back(
      {1, Atom{Atom::Kind::remainder, 0, by, {}, std::make_shared<const Expr>(rest)}});
  return remainder;
}

Range bounds(const Expr& x, const std::vector<int64_t>& extents) {
  Range sum{x.constant(), x.constant()};
  for (const Term& term : x.terms()) {
    Range range = term.atom.range;
    switch (term.atom.kind) {
      case Atom::Kind::digit:
        HEDDLE_CHECK(static_cast<size_t>(term.atom.id) < extents.size(), "digit {} of {}",
                     term.atom.id, extents.size());
        range = {0, std::max<int64_t>(extents[term.atom.id] - 1, 0)};
        break;
      case Atom::Kind::quotient:
        range = bounds(*term.atom.inner, extents);
        range = {floor_quotient(range.low, term.atom.by), floor_quotient(range.high, term.atom.by)};
        break;
      case Atom::Kind::remainder:
        range = {0, term.atom.by - 1};
        break;
      case Atom::Kind::runtime:
        break;
    }
    sum.low += term.factor * (term.factor > 0 ? range.low : range.high);
    sum.high += term.factor * (term.factor > 0 ? range.high : range.low);
  }
  return sum;
}

int64_t evaluate(const Expr& x, const std::vector<int64_t>& point,
                 const std::function<int64_t(int)>& runtime) {
  int64_t sum = x.constant();
  for (const Term& term : x.terms()) {
    int64_t value = 0;
    switch (term.atom.kind) {
      case Atom::Kind::digit:
        value = point.at(term.atom.id);
        break;
      case Atom::Kind::quotient:
        value = floor_quotient(evaluate(*term.atom.inner, point, runtime), term.atom.by);
        break;
      case Atom::Kind::remainder:
        value = floor_remainder(evaluate(*term.atom.inner, point, runtime), term.atom.by);
        break;
      case Atom::Kind::runtime:
        value = runtime(term.atom.id);
        break;
    }
    sum += term.factor * value;
  }
  return sum;
}

Expr substitute(const Expr& x, const std::vector<Expr>& replacements,
                const std::vector<int64_t>& new_extents) {
  Expr sum(x.constant());
  for (const Term& term : x.terms()) {
    switch (term.atom.kind) {
      case Atom::Kind::digit:
        sum = sum + replacements.at(term.atom.id) * term.factor;
        break;
      case Atom::Kind::quotient:
        sum = sum + floor_div(substitute(*term.atom.inner, replacements, new_extents), term.atom.by,
                              new_extents) *
                        term.factor;
        break;
      case Atom::Kind::remainder:
        sum = sum + mod(substitute(*term.atom.inner, replacements, new_extents), term.atom.by,
                        new_extents) *
                        term.factor;
        break;
      case Atom::Kind::runtime:
        sum = sum + Expr::runtime(term.atom.id, term.atom.range) * term.factor;
        break;
    }
  }
  return sum;
}

std::string to_string(const Expr& x, const std::vector<std::string>& names) {
  std::string text;
  for (const Term& term : x.terms()) {
    std::string atom;
    switch (term.atom.kind) {
      case Atom::Kind::digit:
        atom = static_cast<size_t>(term.atom.id) < names.size() ? names[term.atom.id]
                                                                : fmt::format("d{}", term.atom.id);
        break;
      case Atom::Kind::quotient:
        atom = fmt::format("(({}) floordiv {})", to_string(*term.atom.inner, names), term.atom.by);
        break;
      case Atom::Kind::remainder:
        atom = fmt::format("(({}) mod {})", to_string(*term.atom.inner, names), term.atom.by);
        break;
      case Atom::Kind::runtime:
        atom = fmt::format("v{}", term.atom.id);
        break;
    }
    bool negative = term.factor < 0;
    int64_t factor = negative ? -term.factor : term.factor;
    if (text.empty()) {
      text = negative ? "-" : "";
    } else {
      text += negative ? " - " : " + ";
    }
    text += factor == 1 ? atom : fmt::format("{}*{}", atom, factor);
  }
  if (text.empty()) return fmt::format("{}", x.constant());
  if (x.constant() > 0) text += fmt::format(" + {}", x.constant());
  if (x.constant() < 0) text += fmt::format(" - {}", -x.constant());
  return text;
}

}  // namespace heddle::index
