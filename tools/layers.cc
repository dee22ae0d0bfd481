#include "layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace heddle::tools {
namespace {

bool has_digit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// By command: "part 2 of 12" of the repeat it lies in; empty: in none of more than a command each.
std::vector<std::string> parts_of(size_t commands, const std::vector<Repeat>& repeats) {
  std::vector<std::string> parts(commands);
  size_t number = 0;
  for (const Repeat& repeat : repeats) {
    if (repeat.period == 1) continue;
    const std::string which = number++ == 0 ? "" : fmt::format("repeat {}, ", number);
    for (size_t i = 0; i < repeat.period * repeat.count; ++i)
      parts[repeat.first + i] =
          fmt::format("{}part {} of {}", which, i / repeat.period + 1, repeat.count);
  }
  return parts;
}

}  // namespace

std::string layer_of_node(std::string_view name) {
  const size_t last = name.rfind('/');
  if (last == std::string_view::npos || last == 0) return std::string(name);
  for (size_t at = name[0] == '/' ? 1 : 0; at < last;) {
    const size_t end = name.find('/', at);
    if (has_digit(name.substr(at, end - at))) return std::string(name.substr(0, end));
    at = end + 1;
  }
  return std::string(name.substr(0, last));
}

CommandLayers layers_of(const std::vector<std::string>& commands,
                        const std::vector<std::string>& first_nodes,
                        const std::vector<Repeat>& repeats) {
  CommandLayers layers;
  const std::vector<std::string> parts = parts_of(commands.size(), repeats);
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < commands.size(); ++i) {
    const std::string& node = first_nodes[i];
    std::string layer = layer_of_node(node);
    if (layer.empty() || layer == node) layer = !parts[i].empty() ? parts[i] : node;
    if (layer.empty()) layer = commands[i];
    const auto [place, added] = known.try_emplace(layer, layers.names.size());
    if (added) layers.names.push_back(layer);
    layers.of.push_back(place->second);
  }
  return layers;
}

}  // namespace heddle::tools
