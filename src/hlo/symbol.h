// Symbol: a bounded dimension of a module whose shapes are those of the bound. In a module's text
// heddle_symbols={name bound extent least parameter.dimension ...; ...}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace heddle::hlo {

struct Symbol {
  std::string name;
  int64_t bound = 0;
  int64_t extent = 0;  // number of the entry's parameter s32[] that is the actual extent
  std::vector<std::pair<int64_t, int64_t>> places;  // parameter, dimension
  int64_t least = 1;  // actual extents that it is run with are no smaller
  bool operator==(const Symbol&) const = default;
};

std::string symbols_text(const std::vector<Symbol>& symbols);  // with braces
// Error: the text is not of the form above.
Result<std::vector<Symbol>> read_symbols(std::string_view text);

}  // namespace heddle::hlo
