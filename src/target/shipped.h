// The device files of data/, compiled in, sorted by name. (CMakeLists.txt generates the .cc.)
#pragma once

#include <string_view>
#include <vector>

namespace heddle::target {

struct ShippedText {
  std::string_view name, json;
};
std::vector<ShippedText> shipped_texts();

}  // namespace heddle::target
