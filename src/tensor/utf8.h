// UTF-8 and code points.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::tensor {

// A byte that is not part of a code point is decoded as itself.
std::vector<uint32_t> code_points(std::string_view text);
std::string utf8(const std::vector<uint32_t>& points);

}  // namespace heddle::tensor
