#include "tensor/extent.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <numeric>

namespace heddle::tensor {

int64_t Extent::at(std::span<const int64_t> extents) const {
  int64_t result = constant;
  for (const auto& [symbol, factor] : terms)
    result += factor * extents[static_cast<size_t>(symbol)];
  return result;
}

Extent Extent::plus(const Extent& other) const {
  std::map<int64_t, int64_t> factors(terms.begin(), terms.end());
  for (const auto& [symbol, factor] : other.terms) factors[symbol] += factor;
  Extent result{constant + other.constant, {}};
  for (const auto& term : factors)
    if (term.second != 0) result.terms.push_back(term);
  return result;
}

Extent Extent::times(int64_t factor) const {
  if (factor == 0) return {};
  Extent result = *this;
  result.constant *= factor;
  for (auto& term : result.terms) term.second *= factor;
  return result;
}

int64_t Extent::common_factor() const {
  if (is_constant()) return 1;
  int64_t result = constant;
  for (const auto& term : terms) result = std::gcd(result, term.second);
  return std::abs(result);
}

Extent Extent::divided_by(int64_t divisor) const {
  Extent result = *this;
  result.constant /= divisor;
  for (auto& term : result.terms) term.second /= divisor;
  return result;
}

std::string to_string(const Extent& extent, std::span<const std::string> names) {
  std::string text;
  const auto add = [&](int64_t number, const std::string& what) {
    text += text.empty() ? (number < 0 ? "-" : "") : (number < 0 ? " - " : " + ");
    text += what;
  };
  for (const auto& [symbol, factor] : extent.terms) {
    const std::string& name = names[static_cast<size_t>(symbol)];
    const int64_t size = std::abs(factor);
    add(factor, size == 1 ? name : fmt::format("{}*{}", size, name));
  }
  if (extent.constant != 0 || text.empty())
    add(extent.constant, std::to_string(std::abs(extent.constant)));
  return text;
}

}  // namespace heddle::tensor
