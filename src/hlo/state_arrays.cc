#include "hlo/state_arrays.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

namespace heddle::hlo {
namespace {

constexpr std::string_view kKey = "heddle_states";

// The bits of the elements of each, "{0 11400714819323198485 0; 1 2}".
std::optional<std::vector<std::vector<uint64_t>>> numbers_of(const std::string& text) {
  if (text.size() < 2) return std::nullopt;
  std::vector<std::vector<uint64_t>> result;
  std::stringstream all(text.substr(1, text.size() - 2));
  for (std::string one; std::getline(all, one, ';');) {
    std::stringstream words(one);
    std::vector<uint64_t>& numbers = result.emplace_back();
    for (std::string word; words >> word;) {
      const char* end = word.data() + word.size();
      const auto read = std::from_chars(word.data(), end, numbers.emplace_back());
      if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    }
  }
  return result;
}

std::optional<std::vector<Literal>> starts_of(const Module& module, const std::string& text) {
  const auto all = numbers_of(text);
  const Computation* entry = module.entry();
  if (!all || !entry || !entry->root() || !entry->root()->shape().is_tuple()) return std::nullopt;
  const std::vector<Shape>& outputs = entry->root()->shape().elements();
  const std::vector<Instr*>& inputs = entry->parameters();
  if (all->size() > outputs.size() || all->size() > inputs.size()) return std::nullopt;
  std::vector<Literal> starts;
  for (size_t i = 0; i < all->size(); ++i) {
    const Shape& shape = inputs[inputs.size() - all->size() + i]->shape();
    const std::vector<uint64_t>& numbers = (*all)[i];
    if (!shape.is_array() || !shape.is_static() || tensor::is_complex(shape.type()) ||
        !shape.compatible(outputs[outputs.size() - all->size() + i]) ||
        shape.elems() != std::ssize(numbers))
      return std::nullopt;
    Literal& start = starts.emplace_back(shape);
    for (size_t e = 0; e < numbers.size(); ++e) start.set_bits(static_cast<int64_t>(e), numbers[e]);
  }
  return starts;
}

const std::string* text_of(const Module& module) {
  for (const auto& [key, value] : module.header)
    if (key == kKey) return &value;
  return nullptr;
}

}  // namespace

std::vector<Literal> states_of(const Module& module) {
  const std::string* text = text_of(module);
  return text == nullptr ? std::vector<Literal>()
                         : starts_of(module, *text).value_or(std::vector<Literal>());
}

void set_states(Module* module, const std::vector<Literal>& starts) {
  std::erase_if(module->header, [](const auto& one) { return one.first == kKey; });
  if (starts.empty()) return;
  std::string text;
  for (const Literal& start : starts) {
    std::vector<uint64_t> numbers;
    for (int64_t i = 0; i < start.elems(); ++i) numbers.push_back(start.get_bits(i));
    text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(numbers, " "));
  }
  module->header.emplace_back(kKey, "{" + text + "}");
}

bool states_fit(const Module& module) {
  const std::string* text = text_of(module);
  return text == nullptr || starts_of(module, *text).has_value();
}

}  // namespace heddle::hlo
