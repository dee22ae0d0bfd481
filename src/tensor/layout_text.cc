// Layouts as HLO text writes them, and the check of a layout that came from outside.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "tensor/layout.h"

namespace heddle::tensor {
namespace {

// Where a part stands in the text; D, T, L, #, *, E, S, then the rest.
int order_of(std::string_view part) {
  if (part.starts_with("D(")) return 0;
  if (part.starts_with("L(")) return 2;
  if (part.starts_with("#(")) return 3;
  if (part.starts_with("*(")) return 4;
  return 7;
}

struct Part {
  int order;
  std::string text;
};

// "L(1)#(u32)M(3)" as its parts; parentheses may nest.
void split_rest(const std::string& rest, std::vector<Part>& parts) {
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '(') ++depth;
    if (rest[i] == ')' && --depth == 0) {
      std::string text = rest.substr(begin, i + 1 - begin);
      parts.push_back({order_of(text), std::move(text)});
      begin = i + 1;
    }
  }
  if (begin < rest.size()) parts.push_back({7, rest.substr(begin)});
}

}  // namespace

std::string to_string(const Layout& layout) {
  std::vector<Part> parts;
  split_rest(layout.rest, parts);
  if (!layout.tiles.empty()) {
    std::string text = "T";
    for (const Tile& tile : layout.tiles) {
      text += '(';
      for (size_t i = 0; i < tile.dims.size(); ++i) {
        if (i > 0) text += ',';
        text += tile.dims[i] == Tile::kCombine ? "*" : fmt::to_string(tile.dims[i]);
      }
      text += ')';
    }
    parts.push_back({1, text});
  }
  if (layout.element_size_bits != 0)
    parts.push_back({5, fmt::format("E({})", layout.element_size_bits)});
  if (layout.memory_space != 0) parts.push_back({6, fmt::format("S({})", layout.memory_space)});
  if (!layout.padded_dimensions.empty())
    parts.push_back({8, fmt::format("PD({})", fmt::join(layout.padded_dimensions, ","))});
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.order < b.order; });
  std::string text = fmt::format("{{{}", fmt::join(layout.minor_to_major, ","));
  if (!parts.empty()) text += ':';
  for (const Part& part : parts) text += part.text;
  return text + '}';
}

}  // namespace heddle::tensor
