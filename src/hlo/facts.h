// Facts that passes know about an instruction besides its attributes, one row each in facts.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::hlo {

enum class Join : uint8_t { none, phases, table, loop };  // join.h

struct Facts {
#define HEDDLE_FACT(type, member, key) type member{};
#include "hlo/facts.def"
  bool operator==(const Facts&) const = default;
};

bool is_fact_key(std::string_view key);
// Parses the text after `key=`. Error: the value is not of the fact's type.
Status read_fact(std::string_view key, std::string_view value, Facts* facts);
// ", key=value" for each known fact, in the order of the rows.
std::string facts_text(const Facts& facts);

}  // namespace heddle::hlo
