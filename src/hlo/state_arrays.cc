#include "hlo/state_arrays.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace heddle::hlo {
namespace {

std::optional<std::vector<Literal>> starts_of(const Module& module) {
  const std::vector<std::vector<uint64_t>>& all = module.states;
  const Computation* entry = module.entry();
  if (!entry || !entry->root() || !entry->root()->shape().is_tuple()) return std::nullopt;
  const std::vector<Shape>& outputs = entry->root()->shape().elements();
  const std::vector<Instr*>& inputs = entry->parameters();
  if (all.size() > outputs.size() || all.size() > inputs.size()) return std::nullopt;
  std::vector<Literal> starts;
  for (size_t i = 0; i < all.size(); ++i) {
    const Shape& shape = inputs[inputs.size() - all.size() + i]->shape();
    const std::vector<uint64_t>& numbers = all[i];
    if (!shape.is_array() || !shape.is_static() || tensor::is_complex(shape.type()) ||
        !shape.compatible(outputs[outputs.size() - all.size() + i]) ||
        shape.elems() != std::ssize(numbers))
      return std::nullopt;
    Literal& start = starts.emplace_back(shape);
    for (size_t e = 0; e < numbers.size(); ++e) start.set_bits(static_cast<int64_t>(e), numbers[e]);
  }
  return starts;
}

}  // namespace

std::string states_text(const std::vector<std::vector<uint64_t>>& states) {
  std::string text;
  for (const std::vector<uint64_t>& numbers : states)
    text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(numbers, " "));
  return '{' + text + '}';
}

Result<std::vector<std::vector<uint64_t>>> read_states(std::string_view text) {
  const bool braced = text.size() >= 2 && text.front() == '{' && text.back() == '}';
  bool good = braced;
  std::vector<std::vector<uint64_t>> result;
  std::stringstream all(std::string(braced ? text.substr(1, text.size() - 2) : ""));
  for (std::string one; std::getline(all, one, ';');) {
    std::stringstream words(one);
    std::vector<uint64_t>& numbers = result.emplace_back();
    for (std::string word; words >> word;) {
      const char* end = word.data() + word.size();
      const auto read = std::from_chars(word.data(), end, numbers.emplace_back());
      good &= read.ec == std::errc() && read.ptr == end;
    }
  }
  if (!good) return user_error("heddle_states: got '{}', wanted {{number …; …}}", text);
  return result;
}

std::vector<Literal> states_of(const Module& module) {
  return starts_of(module).value_or(std::vector<Literal>());
}

void set_states(Module* module, const std::vector<Literal>& starts) {
  module->states.clear();
  for (const Literal& start : starts) {
    std::vector<uint64_t>& numbers = module->states.emplace_back();
    for (int64_t i = 0; i < start.elems(); ++i) numbers.push_back(start.get_bits(i));
  }
}

bool states_fit(const Module& module) {
  return module.states.empty() || starts_of(module).has_value();
}

}  // namespace heddle::hlo
