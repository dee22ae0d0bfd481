#include "program/saved.h"

#include <algorithm>
#include <cstdlib>

#include "program/verify.h"

namespace heddle::program {
namespace {

constexpr int64_t kMostTimes = 1 << 16;  // limit of PortDimension::times

// Checks the variants against each other; its messages lack the file's name.
class SavedVerifier {
 public:
  explicit SavedVerifier(const Saved& saved) : saved_(saved) {}

  Status run() const {
    if (saved_.variants.empty() || (saved_.symbols.empty() && saved_.variants.size() != 1))
      return user_error("{} programs of {} dimensions", saved_.variants.size(),
                        saved_.symbols.size());
    HEDDLE_RETURN_IF_ERROR(check_symbols());
    for (size_t v = 0; v < saved_.variants.size(); ++v) {
      HEDDLE_RETURN_IF_ERROR(verify(saved_.variants[v].program));
      HEDDLE_RETURN_IF_ERROR(check_bounds(v));
      HEDDLE_RETURN_IF_ERROR(check_ports(v, true));
      HEDDLE_RETURN_IF_ERROR(check_ports(v, false));
    }
    return {};
  }

 private:
  // Of symbols before number s that have an extent of their own.
  bool are_of_own(const tensor::Extent::Terms& terms, size_t s) const {
    return std::all_of(terms.begin(), terms.end(), [&](const auto& term) {
      return term.first >= 0 && static_cast<size_t>(term.first) < s && term.second > 0 &&
             term.second <= kMostTimes &&
             saved_.symbols[static_cast<size_t>(term.first)].of.is_constant();
    });
  }

  Status check_symbols() const {
    for (size_t s = 0; s < saved_.symbols.size(); ++s) {
      const Symbol& symbol = saved_.symbols[s];
      if (symbol.name.empty() || symbol.bound < 1 || symbol.bound > INT32_MAX || symbol.least < 0 ||
          symbol.least > symbol.bound || (symbol.inputs.empty() && symbol.of.is_constant()))
        return user_error("dimension '{}' is not one of an input", symbol.name);
      bool good = std::abs(symbol.of.constant) <= INT32_MAX && are_of_own(symbol.of.terms, s);
      for (const auto& [quotient, factor] : symbol.of.quotients)
        good = good && are_of_own(quotient.terms, s) && factor > 0 && factor <= kMostTimes &&
               quotient.divisor > 1 && quotient.divisor <= INT32_MAX && quotient.constant >= 0 &&
               quotient.constant < quotient.divisor;
      if (!good) return user_error("dimension '{}' does not follow from others", symbol.name);
    }
    return {};
  }

  Status check_bounds(size_t v) const {
    const Variant& variant = saved_.variants[v];
    const size_t count = saved_.symbols.size();
    bool good = variant.bounds.size() == count && variant.least.size() == count &&
                variant.told.size() <= shown_inputs(variant.program);
    for (size_t s = 0; good && s < count; ++s) {
      good = 0 <= variant.least[s] && variant.least[s] <= variant.bounds[s];
      // An extent that may differ from its bound must be told, or derived.
      const auto number = static_cast<int64_t>(s);
      const bool told =
          std::find(variant.told.begin(), variant.told.end(), number) != variant.told.end();
      good = good &&
             (told || variant.least[s] == variant.bounds[s] || !saved_.symbols[s].of.is_constant());
    }
    for (size_t i = 0; good && i < variant.told.size(); ++i) {
      const Port& port =
          variant.program.inputs[shown_inputs(variant.program) - variant.told.size() + i];
      good = variant.told[i] >= (i == 0 ? 0 : variant.told[i - 1] + 1) &&
             variant.told[i] < static_cast<int64_t>(count) &&
             port.shape == tensor::Shape::array(tensor::Type::s32, {});
    }
    if (!good) return user_error("the extents of program {} do not fit", v);
    return {};
  }

  size_t count(const Variant& variant, bool inputs) const {
    return inputs ? shown_inputs(variant.program) - variant.told.size()
                  : variant.program.outputs.size();
  }

  // Ports must equal the first variant's, except for dimensions that depend on a symbol.
  Status check_ports(size_t v, bool inputs) const {
    const Variant &first = saved_.variants[0], &variant = saved_.variants[v];
    bool good = count(first, inputs) == count(variant, inputs) &&
                first.program.index_checks == variant.program.index_checks &&
                first.program.states == variant.program.states;
    for (size_t p = 0; good && p < count(first, inputs); ++p) {
      const Port& a = (inputs ? first.program.inputs : first.program.outputs)[p];
      const Port& b = (inputs ? variant.program.inputs : variant.program.outputs)[p];
      good = a.name == b.name && a.alias_name == b.alias_name &&
             a.shape.is_array() == b.shape.is_array() && a.shape.type() == b.shape.type();
      if (!good || !a.shape.is_array()) continue;
      good = a.shape.rank() == b.shape.rank() && a.shape.is_static() && b.shape.is_static();
      for (int64_t d = 0; good && d < a.shape.rank(); ++d) {
        const auto [s, times] = symbol_at(static_cast<int64_t>(p), d, inputs);
        const int64_t x = a.shape.dim(d), y = b.shape.dim(d);
        if (s < 0) {
          good = x == y;
        } else {
          // Inputs may be larger.
          const auto fits = [&, s = static_cast<size_t>(s), times = times](const Variant& of,
                                                                           int64_t extent) {
            const int64_t least = extent / times;
            return inputs ? least >= of.bounds[s] : extent == times * of.bounds[s];
          };
          good = times > 0 && fits(first, x) && fits(variant, y);
        }
      }
    }
    const size_t shown = inputs ? count(first, true) : shown_outputs(first.program);
    for (const Symbol& symbol : saved_.symbols)
      for (const PortDimension& place : inputs ? symbol.inputs : symbol.outputs)
        good = good && place.port >= 0 && place.port < static_cast<int64_t>(shown) &&
               is_place(place, inputs);
    if (!good)
      return user_error("the {} of program {} are not those of the others",
                        inputs ? "inputs" : "outputs", v);
    return {};
  }

  bool is_place(const PortDimension& place, bool inputs) const {
    const Program& program = saved_.variants[0].program;
    const tensor::Shape& shape =
        (inputs ? program.inputs : program.outputs)[static_cast<size_t>(place.port)].shape;
    return shape.is_array() && place.dimension >= 0 && place.dimension < shape.rank();
  }

  // The symbol and its `times` at a dimension of a port; -1: none.
  std::pair<int64_t, int64_t> symbol_at(int64_t port, int64_t dimension, bool inputs) const {
    for (size_t s = 0; s < saved_.symbols.size(); ++s)
      for (const PortDimension& place :
           inputs ? saved_.symbols[s].inputs : saved_.symbols[s].outputs)
        if (place.port == port && place.dimension == dimension)
          return {static_cast<int64_t>(s), place.times};
    return {-1, 1};
  }

  const Saved& saved_;
};

}  // namespace

int64_t variant_for(const Saved& saved, const std::vector<int64_t>& extents) {
  for (size_t v = 0; v < saved.variants.size(); ++v) {
    const Variant& variant = saved.variants[v];
    bool fits = true;
    for (size_t s = 0; s < extents.size(); ++s)
      fits = fits && variant.least[s] <= extents[s] && extents[s] <= variant.bounds[s];
    if (fits) return static_cast<int64_t>(v);
  }
  return -1;
}

std::string dimensions_text(const std::vector<Symbol>& symbols) {
  std::string text;
  for (const Symbol& symbol : symbols)
    if (symbol.of.is_constant())
      text += fmt::format("{}{}<={}", text.empty() ? "" : ", ", symbol.name, symbol.bound);
  return text;
}

Status verify(const Saved& saved) { return SavedVerifier(saved).run(); }

}  // namespace heddle::program
