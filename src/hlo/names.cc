#include "hlo/names.h"

#include "tensor/type.h"

namespace heddle::hlo {

std::string legal_name(std::string_view wanted) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string name;
  name.reserve(wanted.size() + 1);
  for (char c : wanted) {
    const bool legal = is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-';
    name.push_back(legal ? c : '_');
  }
  if (name.empty() || !(is_letter(name[0]) || name[0] == '_')) name.insert(name.begin(), '_');
  if (tensor::type_from_name(name)) name.push_back('_');
  return name;
}

}  // namespace heddle::hlo
