// Names of instructions and computations: legal identifiers of HLO text, unique in their table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace heddle::hlo {

// Letters, digits, `_`, `.` and `-`, not starting with a digit, `.` or `-`; other characters become
// `_`. A name that is an element type ("f32") gets a `_` appended. Never empty.
std::string legal_name(std::string_view wanted);

// `wanted`, made legal, if it is free; else with its ".<n>" replaced by the next free one.
// `next_suffix` remembers where to look, per stem.
template <typename T>
std::string unique_name(const std::unordered_map<std::string, T>& taken,
                        std::unordered_map<std::string, int64_t>& next_suffix,
                        std::string_view wanted) {
  std::string name = legal_name(wanted);
  if (!taken.contains(name)) return name;
  const size_t dot = name.find_last_not_of("0123456789");
  if (dot != std::string::npos && dot > 0 && dot + 1 < name.size() && name[dot] == '.')
    name.resize(dot);
  int64_t& next = next_suffix.try_emplace(name, 1).first->second;
  std::string candidate;
  do {
    candidate = name + "." + std::to_string(next++);
  } while (taken.contains(candidate));
  return candidate;
}

}  // namespace heddle::hlo
