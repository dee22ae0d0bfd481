// Layouts as HLO text, and the check of a layout that came from outside.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "tensor/layout.h"

namespace heddle::tensor {
namespace {

// Position of a part in the text; D, T, L, #, *, E, S, then the rest.
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

// Splits "L(1)#(u32)M(3)" into its parts; parentheses may nest.
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

// Parses a layout's text; every error has its position.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), all_(text) {}

  Result<Layout> parse() {
    if (!take('{')) return wrong("'{'");
    if (!peek(':') && !peek('}')) HEDDLE_RETURN_IF_ERROR(parse_numbers(layout_.minor_to_major));
    if (take(':')) {
      while (!peek('}') && !text_.empty()) HEDDLE_RETURN_IF_ERROR(parse_part());
    }
    if (!take('}')) return wrong("'}'");
    skip_spaces();
    if (!text_.empty()) return wrong("the end");
    return layout_;
  }

 private:
  tl::unexpected<Error> wrong(const char* wanted) {
    return user_error("layout '{}': got '{}' at {}, wanted {}", all_.substr(0, 80),
                      text_.substr(0, 20), all_.size() - text_.size(), wanted);
  }
  void skip_spaces() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size()));
  }
  bool peek(char c) {
    skip_spaces();
    return text_.starts_with(c);
  }
  bool take(char c) {
    if (!peek(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  Status parse_number(int64_t& value) {
    skip_spaces();
    auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return wrong("a number");
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return {};
  }
  Status parse_numbers(std::vector<int64_t>& values) {
    do {
      HEDDLE_RETURN_IF_ERROR(parse_number(values.emplace_back()));
    } while (take(','));
    return {};
  }
  // "(numbers)" after the name of a part.
  Status parse_list(std::vector<int64_t>& values) {
    if (!take('(')) return wrong("'('");
    HEDDLE_RETURN_IF_ERROR(parse_numbers(values));
    if (!take(')')) return wrong("')'");
    return {};
  }
  Status parse_one(int64_t& value) {
    std::vector<int64_t> values;
    HEDDLE_RETURN_IF_ERROR(parse_list(values));
    if (values.size() != 1) return wrong("one number before it");
    value = values[0];
    return {};
  }

  Status parse_tile() {
    Tile tile;
    if (!take('(')) return wrong("'('");
    do {
      if (take('*')) {
        tile.dims.push_back(Tile::kCombine);
      } else {
        HEDDLE_RETURN_IF_ERROR(parse_number(tile.dims.emplace_back()));
      }
    } while (take(','));
    if (!take(')')) return wrong("')'");
    layout_.tiles.push_back(std::move(tile));
    return {};
  }

  Status parse_part() {
    skip_spaces();
    std::string_view before = text_;
    size_t letters = std::min(text_.find_first_of(" ("), text_.size());
    std::string_view name = text_.substr(0, letters);
    text_.remove_prefix(letters);
    if (name.empty() || name.size() > 2 || !peek('(')) return wrong("a part such as S(1)");
    if (name == "T") {
      while (peek('(')) HEDDLE_RETURN_IF_ERROR(parse_tile());
    } else if (name == "E") {
      return parse_one(layout_.element_size_bits);
    } else if (name == "S") {
      return parse_one(layout_.memory_space);
    } else if (name == "PD") {
      return parse_list(layout_.padded_dimensions);
    } else {
      HEDDLE_RETURN_IF_ERROR(skip_parentheses());
      layout_.rest += before.substr(0, before.size() - text_.size());
    }
    return {};
  }
  Status skip_parentheses() {
    int depth = 0;
    for (size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '(') ++depth;
      if (text_[i] == ')' && --depth == 0) {
        text_.remove_prefix(i + 1);
        return {};
      }
    }
    return wrong("')'");
  }

  std::string_view text_, all_;
  Layout layout_;
};

// Limit on the tiles of a layout and the sizes of a tile: every tile adds dimensions to iterate
// over.
constexpr size_t kMaxTiles = 16;

Status check_tile(const Tile& tile) {
  if (tile.dims.empty() || tile.dims.back() == Tile::kCombine) {
    return user_error("a tile must end in a size");
  }
  if (tile.dims.size() > kMaxTiles) return user_error("tile of more than {} sizes", kMaxTiles);
  for (int64_t size : tile.dims) {
    if (size <= 0 && size != Tile::kCombine)
      return user_error("tile size {}: wanted 1 or more", size);
  }
  return {};
}

// Whether the number of array positions, padding and tiles included, does not overflow. Tiles at
// most multiply it by the product of their sizes.
bool is_countable(const Layout& layout, std::span<const int64_t> dims) {
  int64_t places = 1;
  auto multiply = [&places](int64_t factor) {
    return factor <= 1 || !__builtin_mul_overflow(places, factor, &places);
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t extent = layout.padded_dimensions.empty() ? dims[i] : layout.padded_dimensions[i];
    if (!multiply(extent)) return false;
  }
  for (const Tile& tile : layout.tiles) {
    for (int64_t size : tile.dims) {
      if (!multiply(size)) return false;
    }
  }
  return true;
}

}  // namespace

Result<Layout> parse_layout(std::string_view text) { return Parser(text).parse(); }

Status check_layout(const Layout& layout, std::span<const int64_t> dims) {
  auto rank = static_cast<int64_t>(dims.size());
  std::string text = to_string(layout);
  std::vector<bool> seen(dims.size(), false);
  for (int64_t d : layout.minor_to_major) {
    if (d < 0 || d >= rank || seen[d]) {
      return user_error("layout {}: wanted every one of the {} dimensions once, got {}", text, rank,
                        d);
    }
    seen[d] = true;
  }
  if (static_cast<int64_t>(layout.minor_to_major.size()) != rank) {
    return user_error("layout {}: wanted {} dimensions, got {}", text, rank,
                      layout.minor_to_major.size());
  }
  if (!layout.padded_dimensions.empty()) {
    if (layout.padded_dimensions.size() != dims.size()) {
      return user_error("layout {}: wanted {} padded dimensions, got {}", text, rank,
                        layout.padded_dimensions.size());
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      if (layout.padded_dimensions[i] < std::max<int64_t>(dims[i], 0)) {
        return user_error("layout {}: dimension {} of {} padded to {}", text, i, dims[i],
                          layout.padded_dimensions[i]);
      }
    }
  }
  if (layout.tiles.size() > kMaxTiles) {
    return user_error("layout {}: more than {} tiles", text, kMaxTiles);
  }
  for (const Tile& tile : layout.tiles) {
    if (auto status = check_tile(tile); !status) return error_in("layout " + text, status.error());
  }
  if (layout.element_size_bits < 0 || layout.element_size_bits > 128) {
    return user_error("layout {}: element size {} bits, wanted 0 to 128", text,
                      layout.element_size_bits);
  }
  if (!is_countable(layout, dims)) return user_error("layout {}: too large", text);
  return {};
}

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
