// Integer index expressions over the digits of an index domain: sums of multiples of atoms, where
// an atom is a digit, a floor quotient or a remainder of a sum by a constant, or a run-time value.
// Kept in a canonical form, so that equal structure is equality. Immutable values; cheap to copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle::index {

// Inclusive range of values.
struct Range {
  int64_t low = 0, high = 0;
  bool operator==(const Range&) const = default;
};

class Expr;

struct Atom {
  enum class Kind : uint8_t { digit, quotient, remainder, runtime };
  Kind kind = Kind::digit;
  int id = 0;                         // digit: number in its domain; runtime: the owner's number
  int64_t by = 1;                     // quotient, remainder: the positive divisor
  Range range;                        // runtime: promised bounds
  std::shared_ptr<const Expr> inner;  // quotient, remainder
};

struct Term {
  int64_t factor;
  Atom atom;
};

class Expr {
 public:
  Expr(int64_t constant = 0) : constant_(constant) {}  // NOLINT: a number is an expression
  static Expr digit(int id);
  static Expr runtime(int id, Range range);

  int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  bool is_digit(int* id = nullptr) const;  // exactly one digit, factor 1, constant 0
  bool is_affine() const;                  // digits (and run-time values) only
  // Factor of a digit in an affine sum (0: absent). Digits inside quotients do not count.
  int64_t factor_of(int digit) const;
  bool uses(int digit) const;  // anywhere, inside quotients too
  bool uses_runtime() const;

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b) { return a + b * -1; }
  friend Expr operator*(const Expr& a, int64_t factor);
  bool operator==(const Expr& other) const;

 private:
  friend Expr floor_div(const Expr&, int64_t, const std::vector<int64_t>&);
  friend Expr mod(const Expr&, int64_t, const std::vector<int64_t>&);
  friend class ExprBuilder;
  int64_t constant_ = 0;
  std::vector<Term> terms_;  // sorted by compare(), no zero factors
};

int compare(const Expr& a, const Expr& b);  // total order: <0, 0, >0
int compare(const Atom& a, const Atom& b);

// Floor quotient and remainder by `by` > 0, simplified with digit i in [0, extents[i]).
Expr floor_div(const Expr& x, int64_t by, const std::vector<int64_t>& extents);
Expr mod(const Expr& x, int64_t by, const std::vector<int64_t>& extents);

// Bounds over the domain; exact for affine sums of independent digits, else sound.
Range bounds(const Expr& x, const std::vector<int64_t>& extents);
// Value at a point; `runtime` gives the run-time values (may be empty if there are none).
int64_t evaluate(const Expr& x, const std::vector<int64_t>& point,
                 const std::function<int64_t(int)>& runtime = {});
// Replaces digit i by replacements[i]; simplified over the new domain.
Expr substitute(const Expr& x, const std::vector<Expr>& replacements,
                const std::vector<int64_t>& new_extents);

// "d0*64 + d1 + (d2 floordiv 8)"; names, if given, replace d<i>.
std::string to_string(const Expr& x, const std::vector<std::string>& names = {});

}  // namespace heddle::index
