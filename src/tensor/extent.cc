#include "tensor/extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

namespace heddle::tensor {
namespace {

int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t sum_at(int64_t constant, const Extent::Terms& terms, std::span<const int64_t> extents) {
  for (const auto& [symbol, factor] : terms)
    constant += factor * extents[static_cast<size_t>(symbol)];
  return constant;
}

template <typename Terms>
Terms sum_of(const Terms& a, const Terms& b) {
  std::map<typename Terms::value_type::first_type, int64_t> factors(a.begin(), a.end());
  for (const auto& [what, factor] : b) factors[what] += factor;
  Terms result;
  for (const auto& term : factors)
    if (term.second != 0) result.emplace_back(term.first, term.second);
  return result;
}

// Takes what the divisor divides out of the factors.
template <typename Terms>
Terms take_whole(Terms* terms, int64_t divisor) {
  Terms whole, rest;
  for (const auto& [what, factor] : *terms) {
    const int64_t times = floor_quotient(factor, divisor);
    if (times != 0) whole.emplace_back(what, times);
    if (factor != times * divisor) rest.emplace_back(what, factor - times * divisor);
  }
  *terms = std::move(rest);
  return whole;
}

}  // namespace

int64_t Extent::at(std::span<const int64_t> extents) const {
  int64_t result = sum_at(constant, terms, extents);
  for (const auto& [quotient, factor] : quotients)
    result += factor *
              floor_quotient(sum_at(quotient.constant, quotient.terms, extents), quotient.divisor);
  return result;
}

Extent Extent::plus(const Extent& other) const {
  return {constant + other.constant, sum_of(terms, other.terms),
          sum_of(quotients, other.quotients)};
}

Extent Extent::times(int64_t factor) const {
  if (factor == 0) return {};
  Extent result = *this;
  result.constant *= factor;
  for (auto& term : result.terms) term.second *= factor;
  for (auto& term : result.quotients) term.second *= factor;
  return result;
}

int64_t Extent::common_factor() const {
  if (is_constant()) return 1;
  int64_t result = constant;
  for (const auto& term : terms) result = std::gcd(result, term.second);
  for (const auto& term : quotients) result = std::gcd(result, term.second);
  return std::abs(result);
}

Extent Extent::divided_by(int64_t divisor) const {
  Extent result = *this;
  result.constant /= divisor;
  for (auto& term : result.terms) term.second /= divisor;
  for (auto& term : result.quotients) term.second /= divisor;
  return result;
}

std::optional<Extent> Extent::quotient(int64_t divisor) const {
  Extent rest = *this;
  Extent whole{floor_quotient(constant, divisor), take_whole(&rest.terms, divisor),
               take_whole(&rest.quotients, divisor)};
  rest.constant -= whole.constant * divisor;
  int64_t common = divisor;
  for (const auto& term : rest.terms) common = std::gcd(common, term.second);
  for (const auto& term : rest.quotients) common = std::gcd(common, term.second);
  if (rest.is_constant()) return whole;
  const int64_t left = rest.constant / common;  // what is above it makes no difference
  rest.constant = 0;
  rest = rest.divided_by(common);
  divisor /= common;
  if (rest.quotients.empty())
    return whole.plus({0, {}, {{Quotient{left, rest.terms, divisor}, 1}}});
  if (!rest.terms.empty() || rest.quotients.size() > 1 || rest.quotients[0].second != 1)
    return std::nullopt;
  // (x/a + c) / b is (x + c*a) / (a*b).
  const Quotient& inner = rest.quotients[0].first;
  const std::optional<Extent> outer =
      Extent{inner.constant + left * inner.divisor, inner.terms}.quotient(inner.divisor * divisor);
  return outer ? std::optional(whole.plus(*outer)) : std::nullopt;
}

std::optional<Extent> Extent::with(std::span<const Extent> instead) const {
  const auto sum = [&](int64_t number, const Terms& of) {
    Extent result{number};
    for (const auto& [symbol, factor] : of)
      result = result.plus(instead[static_cast<size_t>(symbol)].times(factor));
    return result;
  };
  Extent result = sum(constant, terms);
  for (const auto& [quotient, factor] : quotients) {
    const std::optional<Extent> one =
        sum(quotient.constant, quotient.terms).quotient(quotient.divisor);
    if (!one) return std::nullopt;
    result = result.plus(one->times(factor));
  }
  return result;
}

std::vector<int64_t> Extent::symbols() const {
  std::set<int64_t> result;
  for (const auto& term : terms) result.insert(term.first);
  for (const auto& quotient : quotients)
    for (const auto& term : quotient.first.terms) result.insert(term.first);
  return {result.begin(), result.end()};
}

void raise_to(const Extent& extent, int64_t wanted, std::span<const int64_t> bounds,
              std::span<int64_t> extents) {
  const auto raise = [&](int64_t symbol, const auto& by) {
    const auto s = static_cast<size_t>(symbol);
    while (extent.at(extents) < wanted && extents[s] < bounds[s])
      extents[s] = std::min(bounds[s], extents[s] + by(wanted - extent.at(extents)));
  };
  for (const auto& [symbol, factor] : extent.terms)
    if (factor > 0)
      raise(symbol, [&, each = factor](int64_t missing) { return (missing + each - 1) / each; });
  for (const auto& quotient : extent.quotients)
    for (const auto& term : quotient.first.terms) raise(term.first, [](int64_t) { return 1; });
}

namespace {

// Writes a sum; `name_of` gives the text of a symbol, `gap` stands around signs.
template <typename NameOf>
std::string sum_text(const Extent& extent, const NameOf& name_of, const char* gap) {
  std::string text;
  const auto add = [&](int64_t number, const std::string& what) {
    const char* sign = number < 0 ? "-" : "+";
    if (text.empty())
      text = number < 0 ? "-" : "";
    else
      text += fmt::format("{}{}{}", gap, sign, gap);
    text += what;
  };
  const auto times = [](int64_t factor, const std::string& what) {
    const int64_t size = std::abs(factor);
    return size == 1 ? what : fmt::format("{}*{}", size, what);
  };
  for (const auto& [symbol, factor] : extent.terms) add(factor, times(factor, name_of(symbol)));
  for (const auto& [quotient, factor] : extent.quotients) {
    const std::string dividend = sum_text(Extent{quotient.constant, quotient.terms}, name_of, gap);
    const bool is_name =
        quotient.constant == 0 && quotient.terms.size() == 1 && quotient.terms[0].second == 1;
    const std::string text_of =
        fmt::format("{}/{}", is_name ? dividend : '(' + dividend + ')', quotient.divisor);
    add(factor, times(factor, std::abs(factor) == 1 ? text_of : '(' + text_of + ')'));
  }
  if (extent.constant != 0 || text.empty())
    add(extent.constant, std::to_string(std::abs(extent.constant)));
  return text;
}

// sum = [-] part {(+|-) part}; part = [number *] atom [/ number]; atom = number | $number | (sum)
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<Extent> run() {
    std::optional<Extent> result = sum();
    return result && rest_.empty() ? result : std::nullopt;
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 31;  // sums and products of two are exact

  static bool is_small(const Extent& extent) {
    const auto small = [](int64_t value) { return std::abs(value) <= kMost; };
    const auto all = [&](const auto& terms) {
      return std::all_of(terms.begin(), terms.end(),
                         [&](const auto& term) { return small(term.second); });
    };
    return small(extent.constant) && all(extent.terms) && all(extent.quotients) &&
           std::all_of(extent.quotients.begin(), extent.quotients.end(),
                       [&](const auto& one) { return small(one.first.divisor); });
  }

  bool eat(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<int64_t> number() {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0 || value > kMost) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  std::optional<Extent> sum() {
    constexpr int kDeepest = 4;
    if (++depth_ > kDeepest) return std::nullopt;
    std::optional<Extent> result(std::in_place);
    bool negative = eat('-');
    do {
      const std::optional<Extent> one = part();
      if (!one) return std::nullopt;
      result = result->plus(negative ? one->times(-1) : *one);
      if (!is_small(*result)) return std::nullopt;
      negative = !rest_.empty() && rest_.front() == '-';
    } while (eat('+') || eat('-'));
    --depth_;
    return result;
  }

  std::optional<Extent> part() {
    std::optional<Extent> result = atom();
    if (result && result->is_constant() && eat('*')) {
      const int64_t factor = result->constant;
      result = atom();
      if (result) result = result->times(factor);
    }
    if (!result || !is_small(*result)) return std::nullopt;
    if (!eat('/')) return result;
    const std::optional<int64_t> divisor = number();
    if (!divisor || *divisor == 0) return std::nullopt;
    result = result->quotient(*divisor);
    return result && is_small(*result) ? result : std::nullopt;
  }

  std::optional<Extent> atom() {
    if (eat('(')) {
      std::optional<Extent> inner = sum();
      return inner && eat(')') ? inner : std::nullopt;
    }
    const bool is_symbol = eat('$');
    const std::optional<int64_t> value = number();
    if (!value) return std::nullopt;
    return is_symbol ? Extent::of_symbol(*value) : Extent{*value};
  }

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace

std::string to_string(const Extent& extent, std::span<const std::string> names) {
  return sum_text(extent, [&](int64_t symbol) { return names[static_cast<size_t>(symbol)]; }, " ");
}

std::string to_text(const Extent& extent) {
  return sum_text(extent, [](int64_t symbol) { return fmt::format("${}", symbol); }, "");
}

std::optional<Extent> read_extent(std::string_view text) { return Reader(text).run(); }

}  // namespace heddle::tensor
