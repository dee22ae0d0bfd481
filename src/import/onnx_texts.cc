// Operators that make new strings, or numbers from strings: they are evaluated here, on known
// strings (Options::values, hints).
#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cwctype>
#include <set>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"
#include "import/onnx_regex.h"
#include "import/onnx_texts.h"
#include "tensor/utf8.h"

namespace heddle::import {
namespace {

using Texts = std::vector<std::string>;

constexpr int64_t kMostBytes = int64_t{1} << 28;  // limit on all strings that one node makes

Outputs string_concat(Op& op) {
  const Texts a = op.known_texts(0, "X"), b = op.known_texts(1, "Y");
  const Ints of_a = op.shape(0).extents(), of_b = op.shape(1).extents();
  const Ints extents = op.check_extents(common_extents(op, of_a, of_b));
  // The index in an input of an element of the result; input dimensions of 1 are broadcast.
  const auto place = [&](const Ints& of, int64_t i) {
    int64_t at = 0, stride = 1;
    for (size_t d = extents.size(); d-- > 0;) {
      const int64_t index = i % extents[d];
      i /= extents[d];
      const size_t missing = extents.size() - of.size();
      if (d < missing) continue;
      if (of[d - missing] != 1) at += index * stride;
      stride *= of[d - missing];
    }
    return static_cast<size_t>(at);
  };
  Texts result;
  int64_t bytes = 0;
  for (int64_t i = 0; i < product(extents); ++i) {
    result.push_back(a[place(of_a, i)] + b[place(of_b, i)]);
    bytes += static_cast<int64_t>(result.back().size());
    if (bytes > kMostBytes) op.fail("more than {} bytes of strings", kMostBytes);
  }
  return {Output::text(op.text_literal(result, extents))};
}

// Splits at blanks, or at each delimiter; at most `most` times (-1: any number), the rest in one
// piece.
Texts pieces_of(const std::string& text, const std::string& delimiter, int64_t most) {
  Texts pieces;
  if (!delimiter.empty()) {
    size_t from = 0;
    if (text.empty()) return pieces;
    for (size_t at = text.find(delimiter); at != std::string::npos && most != 0;
         at = text.find(delimiter, from), --most) {
      pieces.push_back(text.substr(from, at - from));
      from = at + delimiter.size();
    }
    pieces.push_back(text.substr(from));
    return pieces;
  }
  constexpr const char* kBlanks = " \t\n\r\f\v";
  size_t at = text.find_first_not_of(kBlanks);
  while (at != std::string::npos && most != 0) {
    const size_t end = text.find_first_of(kBlanks, at);
    pieces.push_back(text.substr(at, end == std::string::npos ? end : end - at));
    at = end == std::string::npos ? end : text.find_first_not_of(kBlanks, end);
    --most;
  }
  if (at != std::string::npos) {
    const size_t end = text.find_last_not_of(kBlanks);
    pieces.push_back(text.substr(at, end + 1 - at));
  }
  return pieces;
}

Outputs string_split(Op& op) {
  const Texts x = op.known_texts(0, "X");
  const std::string delimiter = op.string_attr("delimiter", "");
  const int64_t most = op.has_attr("maxsplit") ? op.int_attr("maxsplit", 0) : -1;
  std::vector<Texts> rows;
  size_t width = 0;
  for (const std::string& text : x) {
    rows.push_back(pieces_of(text, delimiter, most));
    width = std::max(width, rows.back().size());
  }
  Ints extents = op.shape(0).extents();
  Literal counts(Shape::array(Type::s64, extents));
  extents.push_back(static_cast<int64_t>(width));
  op.check_extents(extents);
  Texts all;
  for (size_t i = 0; i < rows.size(); ++i) {
    counts.set_s64(static_cast<int64_t>(i), static_cast<int64_t>(rows[i].size()));
    rows[i].resize(width);
    all.insert(all.end(), rows[i].begin(), rows[i].end());
  }
  return {Output::text(op.text_literal(all, extents)), counts};
}

// Letters of any script whose other case is a single code point.
std::string change_case(const std::string& text, bool upper) {
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  std::vector<uint32_t> points = tensor::code_points(text);
  for (uint32_t& point : points) {
    const auto wide = static_cast<wint_t>(point);
    if (locale == nullptr) {
      if (point < 0x80)
        point = static_cast<uint32_t>(upper ? std::toupper(static_cast<int>(point))
                                            : std::tolower(static_cast<int>(point)));
    } else {
      point =
          static_cast<uint32_t>(upper ? ::towupper_l(wide, locale) : ::towlower_l(wide, locale));
    }
  }
  return tensor::utf8(points);
}

Outputs string_normalizer(Op& op) {
  const Texts x = op.known_texts(0, "X");
  const std::string action = op.string_attr("case_change_action", "NONE");
  const bool sensitive = op.int_attr("is_case_sensitive", 0) != 0;
  op.ignore({"locale"});
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    op.fail("case_change_action is {}, wanted NONE, LOWER or UPPER", quoted(action));
  const Ints extents = op.shape(0).extents();
  if (extents.empty() || extents.size() > 2 || (extents.size() == 2 && extents[0] != 1))
    op.fail("X is {}, wanted [C] or [1,C]", to_string(op.shape(0)));
  const auto known_as = [&](const std::string& text) {
    return sensitive ? text : change_case(text, false);
  };
  std::set<std::string> stop;
  for (const std::string& word : op.strings_attr("stopwords")) stop.insert(known_as(word));
  Texts kept;
  for (const std::string& text : x) {
    if (stop.contains(known_as(text))) continue;
    kept.push_back(action == "NONE" ? text : change_case(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();  // an empty result is one empty string
  Ints result = extents;
  result.back() = static_cast<int64_t>(kept.size());
  return {Output::text(op.text_literal(kept, result))};
}

Outputs regex_full_match(Op& op) {
  const Texts x = op.known_texts(0, "X");
  const Result<Regex> regex = Regex::compile(op.string_attr("pattern", ""));
  if (!regex) op.fail("{}", regex.error().message);
  Literal result(Shape::array(Type::pred, op.shape(0).extents()));
  for (size_t i = 0; i < x.size(); ++i)
    result.set_s64(static_cast<int64_t>(i), regex->matches_all(x[i]) ? 1 : 0);
  return {result};
}

std::string number_text(const Literal& x, int64_t i) {
  if (x.type() == Type::pred) return x.get_s64(i) != 0 ? "True" : "False";
  if (x.type() == Type::u64) return std::to_string(static_cast<uint64_t>(x.get_s64(i)));
  if (tensor::is_integer(x.type())) return std::to_string(x.get_s64(i));
  const double value = x.get_f64(i);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  // The fewest digits that identify it.
  return x.type() == Type::f64 ? fmt::format("{}", value)
                               : fmt::format("{}", static_cast<float>(value));
}

bool parse_number(std::string text, Literal& to, int64_t i) {
  const size_t begin = text.find_first_not_of(" \t\n\r"), end = text.find_last_not_of(" \t\n\r");
  if (begin == std::string::npos) return false;
  text = text.substr(begin, end + 1 - begin);
  if (text[0] == '+') text.erase(0, 1);
  const char *first = text.data(), *last = first + text.size();
  if (tensor::is_float(to.type())) {
    double value = 0;
    const auto [stop, error] = std::from_chars(first, last, value);
    if (error == std::errc{} && stop == last) return to.set_f64(i, value), true;
    return false;
  }
  int64_t value = 0;
  if (to.type() == Type::pred) {
    if (text == "True" || text == "true" || text == "False" || text == "false")
      return to.set_s64(i, text[0] == 'T' || text[0] == 't'), true;
  }
  const auto [stop, error] = std::from_chars(first, last, value);
  if (error != std::errc{} || stop != last) return false;
  to.set_s64(i, to.type() == Type::pred ? value != 0 : value);
  return true;
}

constexpr OpEntry kOps[] = {
    {"RegexFullMatch", 1, 1, regex_full_match, true, Text::read},
    {"StringConcat", 2, 2, string_concat, true, Text::read},
    {"StringNormalizer", 1, 1, string_normalizer, true, Text::read},
    {"StringSplit", 1, 1, string_split, true, Text::read},
};

}  // namespace

Outputs cast_to_text(Op& op) {
  if (op.is_text(0)) return {op.value(0)};
  const Literal& x = op.known_or_fail(0, "input");
  if (tensor::is_complex(x.type())) op.fail("input is {}", to_string(x.shape()));
  Texts texts;
  for (int64_t i = 0; i < x.elems(); ++i) texts.push_back(number_text(x, i));
  return {Output::text(op.text_literal(texts, x.shape().extents()))};
}

Outputs cast_from_text(Op& op, Type to) {
  const Texts texts = op.known_texts(0, "input");
  if (tensor::is_complex(to)) op.fail("strings to {}", tensor::type_name(to));
  Literal result(Shape::array(to, op.shape(0).extents()));
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!parse_number(texts[i], result, static_cast<int64_t>(i)))
      op.fail("{} is no number of type {}", quoted(texts[i]), tensor::type_name(to));
  }
  return {result};
}

std::span<const OpEntry> text_ops() { return kOps; }

}  // namespace heddle::import
