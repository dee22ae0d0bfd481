// Stretches of a list that come several times in a row: the equal layers of a model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heddle::tools {

struct Repeat {
  size_t first = 0, period = 0, count = 0;  // `count` times `period` elements, from `first` on
  bool operator==(const Repeat&) const = default;
};

// Those that fold most away, largest first, then what is left between them; none overlap; by
// `first`. `signs`: what makes two elements alike. `scopes`: where a stretch could begin at several
// places it begins where most of its beginnings are changes of scope. Time: with the square of the
// length, up to periods of 4,096.
std::vector<Repeat> repeats_of(const std::vector<std::string>& signs,
                               const std::vector<std::string>& scopes);

}  // namespace heddle::tools
