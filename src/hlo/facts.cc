#include "hlo/facts.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace heddle::hlo {
namespace {

Status read(std::string_view key, std::string_view value, bool* to) {
  if (value != "true" && value != "false")
    return user_error("{}: got '{}', wanted true or false", key, value);
  *to = value == "true";
  return {};
}

Status read(std::string_view key, std::string_view value, std::optional<int64_t>* to) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0)
    return user_error("{}: got '{}', wanted a number, at least 0", key, value);
  *to = number;
  return {};
}

constexpr std::string_view kJoins[] = {"", "phases", "table", "loop"};

Status read(std::string_view key, std::string_view value, Join* to) {
  const auto* found = std::find(std::begin(kJoins) + 1, std::end(kJoins), value);
  if (found == std::end(kJoins))
    return user_error("{}: got '{}', wanted phases, table or loop", key, value);
  *to = static_cast<Join>(found - std::begin(kJoins));
  return {};
}

std::string text(Join value) { return std::string(kJoins[static_cast<size_t>(value)]); }
std::string text(bool value) { return value ? "true" : ""; }
std::string text(std::optional<int64_t> value) { return value ? std::to_string(*value) : ""; }

}  // namespace

bool is_fact_key(std::string_view key) {
#define HEDDLE_FACT(type, member, name) \
  if (key == name) return true;
#include "hlo/facts.def"
  return false;
}

Status read_fact(std::string_view key, std::string_view value, Facts* facts) {
#define HEDDLE_FACT(type, member, name) \
  if (key == name) return read(key, value, &facts->member);
#include "hlo/facts.def"
  HEDDLE_CHECK(false, "no fact '{}'", key);
}

std::string facts_text(const Facts& facts) {
  std::string all;
#define HEDDLE_FACT(type, member, name)                             \
  if (const std::string value = text(facts.member); !value.empty()) \
    all += std::string(", ") + name + "=" + value;
#include "hlo/facts.def"
  return all;
}

}  // namespace heddle::hlo
