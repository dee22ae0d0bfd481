#include "lower/trim_digits.h"

#include <algorithm>

namespace heddle::lower::trimming {

std::optional<std::vector<Linear>> Digits::split(const Touch& access,
                                                 const std::vector<Digit>& digits,
                                                 std::vector<uint32_t>* rest,
                                                 std::vector<Linear::Term>* through) const {
  const Linear& index = access.index;
  std::vector<Linear> parts(digits.size());
  const auto goes_through = [&](const Linear::Term& term, const Digit& digit) {
    return runs_through(term, digit) && is_full(digit, access.buffer);
  };
  for (const Linear::Term& term : index.terms) {
    const int64_t factor = term.factor;
    if (factor < 0) return std::nullopt;
    if (std::any_of(digits.begin(), digits.end(),
                    [&](const Digit& digit) { return goes_through(term, digit); }))
      through->push_back(term);
    size_t d = 0;
    while (d < digits.size() && factor < digits[d].stride) ++d;
    const Variable& variable = variables_[term.var.index()];
    const bool scratch = d < digits.size() && digits[d].scratch;
    if (d == digits.size() ||
        (factor / digits[d].stride >= digits[d].extent && !is_only_tile(term, index, digits[d])) ||
        (scratch && !variable.fact && (variable.known_static || variable.elsewhere))) {
      rest->push_back(term.var.value);
      continue;
    }
    if (factor % digits[d].stride != 0) {
      if (variable.extent == 1) continue;  // it is 0
      return std::nullopt;
    }
    parts[d].terms.push_back(term);
    parts[d].terms.back().factor = factor / digits[d].stride;
  }
  if (index.constant < 0) return std::nullopt;
  for (size_t d = 0; d < digits.size(); ++d) {
    const auto is_below = [&](const Linear::Term& term) {
      return term.factor < digits[d].stride && !goes_through(term, digits[d]);
    };
    const std::optional<int64_t> below = most_of(index, variables_, is_below);
    if (!below || index.constant % digits[d].stride + *below >= digits[d].stride)
      return std::nullopt;
    const int64_t number = index.constant / digits[d].stride;
    parts[d].constant = number % digits[d].round;
  }
  return parts;
}

// The loop over the one tile that a dimension has, whose rows are written out inside it.
bool Digits::is_only_tile(const Linear::Term& term, const Linear& index, const Digit& digit) const {
  const uint32_t tile = term.var.value;
  if (digit.scratch || variables_[tile].extent != 1 || term.factor != digit.stride * digit.extent)
    return false;
  return std::any_of(index.terms.begin(), index.terms.end(), [&](const Linear::Term& inner) {
    const Variable& rows = variables_[inner.var.index()];
    return rows.kind == LoopKind::unrolled && rows.extent == digit.extent && rows.extent > 1 &&
           inner.factor == digit.stride && is_around(tile, inner.var.value);
  });
}

// All of a dimension is there: of what is given, and of a workspace that holds all of its
// outermost one.
bool Digits::is_full(const Digit& digit, BufferId buffer) const {
  return !digit.scratch || (digit.first == 0 && digit.base.empty() &&
                            digit.stride * digit.extent == elements_of(buffer));
}

int64_t Digits::elements_of(BufferId buffer) const {
  int64_t result = 1;
  for (int64_t extent : k_.buffer(buffer).extents) result *= extent;
  return result;
}

bool Digits::runs_through(const Linear::Term& term, const Digit& digit) const {
  const int64_t extent = variables_[term.var.index()].most();
  return term.factor > 0 && term.factor < digit.stride &&
         (extent < 0 || (extent - 1) * term.factor >= digit.stride);
}

bool Digits::takes_in(const Linear::Term& term, const Touch& access, const Digit& digit) const {
  const int64_t own = term.factor * digit.stride;
  int64_t below = access.index.constant % own;
  for (const Linear::Term& other : access.index.terms) {
    if (other.factor >= own) continue;
    const int64_t extent = variables_[other.var.index()].extent;
    if (extent < 0 || other.factor < 0) return false;
    below += other.factor * (extent - 1);
  }
  return below < own;
}

bool Digits::is_around(uint32_t outer, uint32_t var) const {
  for (int at = variables_[var].parent; at >= 0; at = variables_[static_cast<size_t>(at)].parent)
    if (static_cast<uint32_t>(at) == outer) return true;
  return false;
}

bool Digits::crosses(const Linear& part, const Digit& digit, BufferId buffer) const {
  int64_t most = part.constant;
  for (const Linear::Term& term : part.terms)
    most += term.factor * std::max<int64_t>(variables_[term.var.index()].extent - 1, 0);
  return most >= digit.extent && digit.stride * digit.extent < elements_of(buffer);
}
bool Digits::moves_in(const Linear::Term& term, const Digit& digit) const {
  return runs_through(term, digit) ||
         (term.factor >= digit.stride && term.factor / digit.stride < digit.extent);
}

}  // namespace heddle::lower::trimming
