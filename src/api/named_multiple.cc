#include "api/named_multiple.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

namespace heddle::api {

std::optional<NamedMultiple> multiple_of(const std::string& name) {
  const auto is_name = [](std::string_view part) {
    return !part.empty() && std::isdigit(static_cast<unsigned char>(part[0])) == 0 &&
           std::all_of(part.begin(), part.end(), [](char c) {
             return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
           });
  };
  if (is_name(name)) return NamedMultiple{name, 1};
  const size_t star = name.find('*');
  if (star == std::string::npos) return std::nullopt;
  std::string number = name.substr(0, star), of = name.substr(star + 1);
  for (std::string* part : {&number, &of}) {
    part->erase(0, part->find_first_not_of(' '));
    part->erase(part->find_last_not_of(' ') + 1);
  }
  if (is_name(number)) std::swap(number, of);
  int64_t factor = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), factor);
  if (error != std::errc{} || end != number.data() + number.size() || factor < 1 || !is_name(of))
    return std::nullopt;
  return NamedMultiple{of, factor};
}

}  // namespace heddle::api
