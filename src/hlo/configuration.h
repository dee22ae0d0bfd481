// What the function behind a custom call is told beside its operands. Calls of equal attributes
// mean the same only where this is equal, too.
#pragma once

#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr std::string_view kConfiguration = "backend_config";

// As written; empty: there is none, or it is another instruction.
inline std::string_view configuration(const Instr& instr) {
  if (!instr.is(Opcode::custom_call)) return {};
  for (const auto& [key, value] : instr.annotations())
    if (key == kConfiguration) return value;
  return {};
}

inline void copy_configuration(const Instr& from, Instr& to) {
  if (const std::string_view text = configuration(from); !text.empty())
    to.annotations().emplace_back(kConfiguration, text);
}

}  // namespace heddle::hlo
