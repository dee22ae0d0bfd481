// What a misspelt word was perhaps meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::tools {

// Letters to insert, leave out, replace or swap with their neighbour until `a` is `b`.
size_t edit_distance(std::string_view a, std::string_view b);
// The nearest of `words`, in small and capital letters alike; empty: none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& words);
// "; did you mean X?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

}  // namespace heddle::tools
