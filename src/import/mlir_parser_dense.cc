// MLIR text: dense<...> : type. The body is parsed after its type, which follows it.
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "import/mlir_parser.h"

namespace heddle::import {

using tensor::Literal;
using tensor::Shape;
using tensor::Type;

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

// Reads a body's elements into a literal.
struct MlirParser::DenseReader {
  MlirParser* parser;
  Literal* literal;
  const std::vector<int64_t>* dims;
  int64_t next = 0;

  const MlirLexer& lexer() const { return parser->lexer_; }

  [[noreturn]] void fail_count(size_t at) const {
    lexer().fail_at(at, "the elements do not fit the type: {} are wanted", literal->elems());
  }

  // Nested lists, with `depth` dimensions open.
  void elements(size_t depth) {
    if (depth < dims->size()) {
      const size_t at = parser->token().begin;
      int64_t count = 0;
      parser->list("[", "]", [&] {
        elements(depth + 1);
        ++count;
      });
      // Empty lists may be omitted: tensor<2x0xf32> is [] or [[], []].
      if (count != (*dims)[depth] && literal->elems() > 0)
        lexer().fail_at(at, "got {} elements in dimension {}, wanted {}", count, depth,
                        (*dims)[depth]);
      return;
    }
    element();
  }

  void element() {
    const size_t at = parser->token().begin;
    if (next >= literal->elems()) fail_count(at);
    const Type type = literal->type();
    if (tensor::is_complex(type)) {
      parser->expect("(");
      const double real = floating(tensor::complex_component(type));
      parser->expect(",");
      const double imaginary = floating(tensor::complex_component(type));
      parser->expect(")");
      literal->set_complex(next++, {real, imaginary});
    } else if (tensor::is_float(type)) {
      literal->set_f64(next++, floating(type));
    } else {
      integer(at);
    }
  }

  // A number, or its bits: 0x7FC0.
  double floating(Type type) const {
    const std::string_view text = parser->token().text;
    if (!parser->is(MlirTokenKind::integer) || !text.starts_with("0x")) return parser->number();
    uint64_t bits = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
    if (error != std::errc() || end != text.data() + text.size())
      lexer().fail_wanted("bits of a floating-point number");
    parser->lexer_.next();
    return tensor::float_from_bits(type, bits);
  }

  void integer(size_t at) {
    if (parser->is("true") || parser->is("false")) {
      literal->set_s64(next++, parser->is("true") ? 1 : 0);
      parser->lexer_.next();
      return;
    }
    const MlirAttr number = parser->number_attribute(false);
    if (!number.is(MlirAttr::Kind::integer))
      lexer().fail_at(at, "a floating-point number in a tensor of {}",
                      tensor::type_name(literal->type()));
    // For i1 any nonzero number is true.
    literal->set_s64(
        next++, literal->type() == Type::pred ? (number.integer != 0 ? 1 : 0) : number.integer);
  }

  // "0x...": the elements' bytes, little-endian. i1 takes a byte or (older texts) a bit per
  // element.
  void hex(std::string_view text, size_t at) {
    if (!text.starts_with("0x") || text.size() % 2 != 0)
      lexer().fail_at(at, "elements as a string, wanted \"0x...\" with pairs of digits");
    text.remove_prefix(2);
    const size_t bytes = text.size() / 2;
    const auto wanted = static_cast<size_t>(literal->bytes());
    const auto count = static_cast<size_t>(literal->elems());
    const bool packed = literal->type() == Type::pred && bytes != wanted;
    if (bytes != (packed ? (count + 7) / 8 : wanted))
      lexer().fail_at(at, "{} bytes, wanted {}", bytes, wanted);
    std::string decoded(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) {
      const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
      if (high < 0 || low < 0) lexer().fail_at(at + 3 + 2 * i, "wanted hexadecimal digits");
      decoded[i] = static_cast<char>(high * 16 + low);
    }
    const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(decoded[i]); };
    if (literal->type() == Type::pred) {
      for (size_t i = 0; i < count; ++i)
        literal->set_s64(static_cast<int64_t>(i),
                         packed ? (byte_at(i / 8) >> (i % 8)) & 1 : (byte_at(i) != 0 ? 1 : 0));
    } else if (tensor::type_bits(literal->type()) < 8) {
      for (size_t i = 0; i < count; ++i)
        literal->set_bits(static_cast<int64_t>(i),
                          byte_at(i) & ((1u << tensor::type_bits(literal->type())) - 1));
    } else if (bytes > 0) {
      std::memcpy(literal->mutable_data(), decoded.data(), bytes);
    }
    next = literal->elems();
  }
};

MlirAttr MlirParser::dense() {
  if (!is("<")) lexer_.fail_wanted("`<`");
  const size_t begin = token().begin;
  const size_t end = lexer_.behind_bracket(begin);
  lexer_.go_to(end);
  expect(":");
  MlirAttr attr;
  attr.kind = MlirAttr::Kind::dense;
  const size_t type_at = token().begin;
  attr.type = type();
  if (!attr.type.is_tensor() || !attr.type.is_static())
    lexer_.fail_at(type_at, "dense values of type {}, wanted a tensor of known dimensions",
                   to_string(attr.type));
  const size_t behind_type = token().begin;
  dense_elements(attr, begin, end);
  lexer_.go_to(behind_type);
  return attr;
}

// dense_resource<key> : type. The bytes are at the end of the file, after four bytes of alignment:
// {-# dialect_resources: { builtin: { key: "0x04000000..." } } #-}
MlirAttr MlirParser::dense_resource() {
  const size_t at = token().begin;
  expect("<");
  const std::string key = is(MlirTokenKind::string)
                              ? unescape_mlir(expect(MlirTokenKind::string, "a key"))
                              : std::string(expect(MlirTokenKind::word, "the key of a resource"));
  expect(">");
  expect(":");
  MlirAttr attr;
  attr.kind = MlirAttr::Kind::dense;
  attr.type = type();
  if (!attr.type.is_tensor() || !attr.type.is_static())
    lexer_.fail_at(at, "dense_resource of type {}", to_string(attr.type));
  const std::string_view text = lexer_.text();
  const std::string entry = key + ": \"0x";
  const size_t section = text.rfind("{-#");
  const size_t found = section == std::string_view::npos ? section : text.find(entry, section);
  if (found == std::string_view::npos)
    lexer_.fail_at(at, "the values of resource {} were left out of the text", quoted(key));
  const size_t begin = found + entry.size(), end = text.find('"', begin);
  constexpr size_t kAlignmentDigits = 8;
  if (end == std::string_view::npos || end - begin < kAlignmentDigits)
    lexer_.fail_at(found, "the bytes of resource {} are cut off", quoted(key));
  const std::string hex =
      "0x" + std::string(text.substr(begin, end - begin)).substr(kAlignmentDigits);
  const auto count = tensor::checked_product(attr.type.dims);
  if (!count || *count > static_cast<int64_t>(hex.size()))
    lexer_.fail_at(at, "too few bytes for {}", to_string(attr.type));
  Literal literal = value_or_throw(Literal::make(Shape::array(attr.type.element, attr.type.dims)));
  const std::vector<int64_t> no_dims;
  DenseReader{this, &literal, &no_dims}.hex(hex, begin);
  attr.literal = std::make_shared<const Literal>(std::move(literal));
  return attr;
}

void MlirParser::dense_elements(MlirAttr& attr, size_t begin, size_t end) {
  const auto count = tensor::checked_product(attr.type.dims);
  if (!count) lexer_.fail_at(begin, "a value of type {} is too large", to_string(attr.type));
  lexer_.go_to(begin);
  lexer_.next();
  const bool empty = is(">");
  const bool is_hex = is(MlirTokenKind::string);
  const Type element = attr.type.element;
  // A splat: one number, or a string with one element's bytes.
  const auto element_bytes = static_cast<size_t>(tensor::type_bytes(element));
  const bool splat =
      *count != 1 && !empty && !is("[") &&
      (!is_hex || token().text.size() == 2 + 2 * element_bytes) &&
      !(is_hex && element == Type::pred && *count <= 8 && *count != 0 && token().text.size() == 4 &&
        token().text != "0xFF" && token().text != "0x00");
  // Explicit elements take at least a character each, bits of a string a quarter.
  if (!splat && (*count > static_cast<int64_t>(end - begin) * 8 || (empty && *count > 0)))
    lexer_.fail_at(begin, "too few elements for {}", to_string(attr.type));
  Literal literal = value_or_throw(
      Literal::make(splat ? Shape::scalar(element) : Shape::array(element, attr.type.dims)));
  const std::vector<int64_t> no_dims;
  const bool is_list = is("[");
  DenseReader reader{this, &literal, is_list ? &attr.type.dims : &no_dims};
  if (is_hex) {
    reader.hex(token().text, token().begin);
    lexer_.next();
  } else if (!empty) {
    if (is_list && attr.type.dims.empty()) lexer_.fail_wanted("one element");
    reader.elements(0);
  }
  if (!is(">")) lexer_.fail_wanted("`>`");
  if (reader.next != literal.elems()) reader.fail_count(begin);
  attr.literal = std::make_shared<const Literal>(std::move(literal));
}

}  // namespace heddle::import
