// Configuration text that a custom call passes to its function besides the operands. Calls with
// equal attributes are equivalent only if this is also equal.
#pragma once

#include <string_view>

#include "hlo/module.h"

namespace heddle::hlo {

inline constexpr std::string_view kConfiguration = "backend_config";

// As written; empty if there is none or the instruction is not a custom call.
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
