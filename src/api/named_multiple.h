// Private to api: names of dimensions that are multiples of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle::api {

// A dimension's name as a multiple of another name: "32*_h" is 32 of "_h", "n" is one of "n".
struct NamedMultiple {
  std::string name;
  int64_t factor = 1;
};
// Nothing: it is another expression, as exporters write them ("past+1"), and follows from others'.
std::optional<NamedMultiple> multiple_of(const std::string& name);

}  // namespace heddle::api
