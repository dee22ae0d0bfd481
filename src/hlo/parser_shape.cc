// Shapes and layouts.
#include <algorithm>

#include "hlo/parser.h"
#include "hlo/shape_limits.h"
#include "tensor/limits.h"

namespace heddle::hlo {
namespace {

using tensor::Dim;
using tensor::Layout;
using tensor::Tile;

// Bytes of an array; nothing if above the limit. Unbounded dimensions count as 1.
std::optional<int64_t> array_bytes(Type type, const std::vector<Dim>& dims) {
  std::vector<int64_t> extents{std::max<int64_t>(1, tensor::type_bytes(type))};
  for (const Dim& d : dims) extents.push_back(d.size == Dim::kUnbounded ? 1 : d.size);
  const std::optional<int64_t> bytes = tensor::checked_product(extents);
  if (!bytes || *bytes > kMaxArrayBytes) return std::nullopt;
  return bytes;
}

bool is_permutation(const std::vector<int64_t>& order, size_t n) {
  if (order.size() != n) return false;
  std::vector<bool> seen(n, false);
  for (int64_t d : order) {
    if (d < 0 || d >= static_cast<int64_t>(n) || seen[d]) return false;
    seen[d] = true;
  }
  return true;
}

// Whether no padded size comes near an overflow: an extent e in tiles of t takes at most e * t.
bool padding_fits(const Layout& layout, const Shape& shape) {
  std::vector<int64_t> sizes;
  for (const Dim& d : shape.dims()) sizes.push_back(std::max<int64_t>(d.size, 1));
  for (const Tile& tile : layout.tiles)
    for (int64_t size : tile.dims) sizes.push_back(size == Tile::kCombine ? 1 : size);
  if (!layout.padded_dimensions.empty()) {
    if (layout.padded_dimensions.size() != shape.dims().size()) return false;
    for (size_t i = 0; i < shape.dims().size(); ++i)
      if (layout.padded_dimensions[i] < shape.dims()[i].size) return false;
    sizes.insert(sizes.end(), layout.padded_dimensions.begin(), layout.padded_dimensions.end());
  }
  const std::optional<int64_t> product = tensor::checked_product(sizes);
  return product && *product <= int64_t{1} << 56;
}

// Counts the shapes in a shape and repeats the checks of parsed shapes for an inferred one.
struct Extent {
  int64_t parts = 0;
  bool is_too_deep = false, is_too_large = false;

  void add(const Shape& shape, int depth) {
    ++parts;
    is_too_deep = is_too_deep || depth > kMaxTextDepth;
    if (is_too_deep) return;
    if (shape.is_array() && !array_bytes(shape.type(), shape.dims())) is_too_large = true;
    for (const Shape& element : shape.elements()) add(element, depth + 1);
  }
};

// Parts of a layout that are kept as text: the index of the part; -1: not one of them.
int kept_part(std::string_view name) {
  static constexpr std::string_view kParts[] = {"D", "L", "#", "*", "SC", "P", "M"};
  const auto* found = std::find(std::begin(kParts), std::end(kParts), name);
  return found == std::end(kParts) ? -1 : static_cast<int>(found - std::begin(kParts));
}

}  // namespace

Status check_array_shape(const Shape& shape) {
  if (shape.rank() > tensor::kMaxRank)
    return user_error("the shape has more than {} dimensions", tensor::kMaxRank);
  for (const Dim& d : shape.dims())
    if (d.size < 0 && d.size != Dim::kUnbounded)
      return user_error("the dimension {} is negative", d.size);
  if (!array_bytes(shape.type(), shape.dims()))
    return user_error("the shape has more than 2^46 bytes");
  if (!shape.layout()) return {};
  if (!is_permutation(shape.layout()->minor_to_major, static_cast<size_t>(shape.rank())))
    return user_error("the layout's dimensions are not a permutation of {}", shape.rank());
  if (!padding_fits(*shape.layout(), shape))
    return user_error("the layout's tiles or padding do not fit {}", tensor::to_string(shape));
  return {};
}

// The size of nested tuples can double with every line, so inferred parts, which no text limits,
// are counted.
Status Parser::count_inferred(std::span<const Shape* const> shapes, size_t at) {
  Extent extent;
  for (const Shape* shape : shapes) extent.add(*shape, 2);
  inferred_parts_ += extent.parts;
  if (extent.is_too_deep)
    return lexer_.error_at(at, "the shape is nested too deeply (more than {} levels)",
                           kMaxTextDepth);
  if (extent.is_too_large) return lexer_.error_at(at, "the shape has more than 2^46 bytes");
  if (inferred_parts_ > kMaxInferredParts)
    return lexer_.error_at(at, "shapes that are not written have more than {} parts in all",
                           kMaxInferredParts);
  return {};
}

// Whether the next token starts a shape rather than an operand's name or an opcode.
bool Parser::shape_is_next() {
  if (lexer_.peek() == '(') return true;
  const std::string_view word = lexer_.peek_ident();
  if (word.empty()) return false;
  Lexer ahead = lexer_;
  ahead.ident();
  if (word == "b") return ahead.next_is('(');
  return ahead.peek() == '[' && tensor::type_from_name(word).has_value();
}

Result<Shape> Parser::shape() {
  Nesting nesting(*this, 1);
  HEDDLE_RETURN_IF_ERROR(nesting.check());
  const size_t at = lexer_.offset();
  if (lexer_.accept('(')) {
    std::vector<Shape> elements;
    while (!lexer_.accept(')')) {
      HEDDLE_ASSIGN_OR_RETURN(Shape element, shape());
      elements.push_back(std::move(element));
      if (!lexer_.accept(',') && lexer_.peek() != ')')
        return lexer_.unexpected_here("',' or ')' after a shape");
    }
    return Shape::make_tuple(std::move(elements));
  }
  const std::string_view word = lexer_.ident();
  if (word == "b" && lexer_.accept('(')) {  // a buffer: the same value
    HEDDLE_ASSIGN_OR_RETURN(Shape inner, shape());
    HEDDLE_RETURN_IF_ERROR(lexer_.expect(')', "after the buffer's shape"));
    return inner;
  }
  const std::optional<Type> type = tensor::type_from_name(word);
  if (!type) {
    lexer_.seek(at);
    return lexer_.unexpected_here("a shape");
  }
  if (tensor::is_array_type(*type)) return array_shape(*type);
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('[', "after the type"));
  HEDDLE_RETURN_IF_ERROR(lexer_.expect(']', "after '['"));
  return *type == Type::token ? Shape::make_token() : Shape::make_opaque();
}

Result<Shape> Parser::array_shape(Type type) {
  const size_t at = lexer_.offset();
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('[', "after the type"));
  std::vector<Dim> dims;
  while (!lexer_.accept(']')) {
    Dim d;
    if (lexer_.accept('?')) {
      d.size = Dim::kUnbounded;
      d.dynamic = true;
    } else {
      d.dynamic = lexer_.accept("<=");
      const size_t size_at = lexer_.offset();
      HEDDLE_ASSIGN_OR_RETURN(d.size, lexer_.integer("a dimension"));
      if (d.size < 0) return lexer_.error_at(size_at, "the dimension {} is negative", d.size);
    }
    dims.push_back(std::move(d));
    if (static_cast<int64_t>(dims.size()) > tensor::kMaxRank)
      return lexer_.error_at(at, "the shape has more than {} dimensions", tensor::kMaxRank);
    if (!lexer_.accept(',') && lexer_.peek() != ']')
      return lexer_.unexpected_here("',' or ']' after a dimension");
  }
  if (!array_bytes(type, dims)) return lexer_.error_at(at, "the shape has more than 2^46 bytes");
  Shape result(type, std::move(dims));
  // `{` opens a layout only before a number or `:`; else it is a body or a literal.
  Lexer ahead = lexer_;
  if (!ahead.accept('{')) return result;
  const char next = ahead.peek();
  if (next != ':' && !(next >= '0' && next <= '9')) {
    if (result.rank() == 0 && next == '}' && lexer_.next_is('{')) {
      ahead.accept('}');
      lexer_ = ahead;  // f32[]{}
    }
    return result;
  }
  const size_t layout_at = lexer_.offset();
  HEDDLE_ASSIGN_OR_RETURN(Layout layout, this->layout());
  result.set_layout(std::move(layout));
  if (Status checked = check_array_shape(result); !checked)
    return lexer_.error_at(layout_at, "{}", checked.error().message);
  return result;
}

// {1,0:T(8,128)(2,1)E(4)S(1)}
Result<Layout> Parser::layout() {
  Layout layout;
  std::vector<std::pair<int, std::string>> rest;
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('{', "before the layout"));
  while (lexer_.peek() != ':' && lexer_.peek() != '}') {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t d, lexer_.integer("a dimension of the layout"));
    layout.minor_to_major.push_back(d);
    if (!lexer_.accept(',') && lexer_.peek() != ':' && lexer_.peek() != '}')
      return lexer_.unexpected_here("',', ':' or '}' in the layout");
  }
  if (lexer_.accept(':'))
    while (lexer_.peek() != '}') HEDDLE_RETURN_IF_ERROR(layout_part(layout, rest));
  HEDDLE_RETURN_IF_ERROR(lexer_.expect('}', "after the layout"));
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, text] : rest) layout.rest += text;
  return layout;
}

Status Parser::layout_part(Layout& layout, std::vector<std::pair<int, std::string>>& rest) {
  const size_t at = lexer_.offset();
  std::string_view name = lexer_.ident();
  if (name.empty() && (lexer_.next_is('#') || lexer_.next_is('*'))) {
    lexer_.advance(1);
    name = lexer_.slice(at, at + 1);
  }
  if (lexer_.peek() != '(') return lexer_.unexpected_here("a part of the layout");
  if (const int place = kept_part(name); place >= 0) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view value, lexer_.balanced(false));
    rest.emplace_back(place, std::string(name) + squeeze_raw(value));
    return {};
  }
  if (name == "E" || name == "S") {
    lexer_.accept('(');
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value, lexer_.integer("a number"));
    if (value < 0) return lexer_.error_at(at, "{}({}) in a layout is negative", name, value);
    (name == "E" ? layout.element_size_bits : layout.memory_space) = value;
    return lexer_.expect(')', "after the number");
  }
  if (name != "T" && name != "PD")
    return lexer_.error_at(at, "unknown part '{}' of a layout", name);
  while (lexer_.accept('(')) {
    Tile tile;
    while (!lexer_.accept(')')) {
      if (name == "T" && lexer_.accept('*')) {
        tile.dims.push_back(Tile::kCombine);
      } else {
        const size_t size_at = lexer_.offset();
        HEDDLE_ASSIGN_OR_RETURN(const int64_t size, lexer_.integer("a tile's size"));
        if (size < 1 || size > kMaxArrayBytes)
          return lexer_.error_at(size_at, "a tile's size is {}, wanted at least 1", size);
        tile.dims.push_back(size);
      }
      if (!lexer_.accept(',') && lexer_.peek() != ')')
        return lexer_.unexpected_here("',' or ')' in the layout");
    }
    if (name == "PD") {
      layout.padded_dimensions = std::move(tile.dims);
      return {};
    }
    layout.tiles.push_back(std::move(tile));
  }
  return {};
}

}  // namespace heddle::hlo
