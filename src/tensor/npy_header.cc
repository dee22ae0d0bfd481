#include "tensor/npy_header.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "tensor/limits.h"
#include "tensor/shape.h"

namespace heddle::tensor {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxHeaderBytes = 1 << 20;

struct DtypeRow {
  std::string_view code;  // kind and bytes, without the byte order
  Type type;
};

// V and f1 are numpy's codes for the types of ml_dtypes: as_type selects the actual type.
constexpr std::array kDtypes = {
    DtypeRow{"b1", Type::pred}, DtypeRow{"i1", Type::s8},    DtypeRow{"i2", Type::s16},
    DtypeRow{"i4", Type::s32},  DtypeRow{"i8", Type::s64},   DtypeRow{"u1", Type::u8},
    DtypeRow{"u2", Type::u16},  DtypeRow{"u4", Type::u32},   DtypeRow{"u8", Type::u64},
    DtypeRow{"f2", Type::f16},  DtypeRow{"f4", Type::f32},   DtypeRow{"f8", Type::f64},
    DtypeRow{"c8", Type::c64},  DtypeRow{"c16", Type::c128}, DtypeRow{"V1", Type::u8},
    DtypeRow{"V2", Type::u16},  DtypeRow{"f1", Type::u8},
};

// The Python dictionary literal of a header: {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 4), }.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> take_string() {
    skip_spaces();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view result = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return result;
  }
  std::optional<int64_t> take_number() {
    skip_spaces();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    take('L');  // a long of Python 2
    return value;
  }
  bool at_end() {
    skip_spaces();
    return text_.empty();
  }
  std::string rest() const {
    std::string shown;
    for (char c : text_.substr(0, 40)) shown += c >= ' ' && c < 127 ? c : '.';
    return shown;
  }

 private:
  void skip_spaces() {
    size_t n = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(n == std::string_view::npos ? text_.size() : n);
  }
  std::string_view text_;
};

std::string printable(std::string_view text) {
  std::string shown;
  for (char c : text.substr(0, 40)) shown += c >= ' ' && c < 127 ? c : '.';
  return shown;
}

struct Descr {
  Type type;
  int64_t text_width;  // code points of each string; -1: not strings
};

Result<Descr> parse_descr(std::string_view descr) {
  if (!descr.empty() && descr[0] == '>' && descr != ">u1" && descr != ">i1" && descr != ">b1") {
    return user_error("big-endian dtype '{}': got >, wanted <; convert with a.astype('<{}')",
                      printable(descr), printable(descr.substr(1)));
  }
  std::string_view code = descr;
  if (!code.empty() && std::string_view("<>|=").find(code[0]) != std::string_view::npos) {
    code.remove_prefix(1);
  }
  for (const DtypeRow& row : kDtypes) {
    if (row.code == code) return Descr{row.type, -1};
  }
  int64_t width = 0;
  if (code.starts_with('U')) {
    const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), width);
    if (error == std::errc() && end == code.data() + code.size() && width >= 0)
      return Descr{Type::u32, width};
  }
  const char* what = "dtype";
  if (code.starts_with('O')) what = "pickled objects, dtype";
  if (code.starts_with('U') || code.starts_with('S')) what = "bytes as strings, dtype";
  return user_error("{} '{}' cannot be read; wanted bool, int, float or complex: convert the array",
                    what, printable(descr));
}

Result<std::vector<int64_t>> parse_dims(Scanner& scanner) {
  std::vector<int64_t> dims;
  if (!scanner.take('('))
    return user_error("npy header: shape is not a tuple at '{}'", scanner.rest());
  while (!scanner.take(')')) {
    auto dim = scanner.take_number();
    if (!dim) return user_error("npy header: bad extent at '{}'", scanner.rest());
    if (static_cast<int64_t>(dims.size()) == kMaxRank)
      return user_error("npy header: more than {} dimensions", kMaxRank);
    dims.push_back(*dim);
    if (!scanner.take(',')) {
      if (!scanner.take(')')) return user_error("npy header: bad shape at '{}'", scanner.rest());
      break;
    }
  }
  return dims;
}

struct Entries {
  std::optional<Descr> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> dims;
};

Status parse_entry(Scanner& scanner, Entries& entries) {
  auto key = scanner.take_string();
  if (!key || !scanner.take(':')) return user_error("npy header: no key at '{}'", scanner.rest());
  if (*key == "descr") {
    auto descr = scanner.take_string();
    if (!descr) return user_error("structured dtypes cannot be read: '{}'", scanner.rest());
    HEDDLE_ASSIGN_OR_RETURN(entries.type, parse_descr(*descr));
  } else if (*key == "fortran_order") {
    bool yes = scanner.take_word("True");
    if (!yes && !scanner.take_word("False")) {
      return user_error("npy header: fortran_order is '{}', wanted True or False", scanner.rest());
    }
    entries.fortran_order = yes;
  } else if (*key == "shape") {
    HEDDLE_ASSIGN_OR_RETURN(entries.dims, parse_dims(scanner));
  } else {
    return user_error("npy header: unknown key '{}'", printable(*key));
  }
  return {};
}

Result<Entries> parse_dictionary(std::string_view text) {
  Scanner scanner(text);
  Entries entries;
  if (!scanner.take('{')) return user_error("npy header: no dictionary at '{}'", scanner.rest());
  while (!scanner.take('}')) {
    HEDDLE_RETURN_IF_ERROR(parse_entry(scanner, entries));
    if (scanner.take(',')) continue;
    if (!scanner.take('}')) return user_error("npy header: damaged at '{}'", scanner.rest());
    break;
  }
  if (!scanner.at_end()) return user_error("npy header: text after it: '{}'", scanner.rest());
  if (!entries.type || !entries.fortran_order || !entries.dims) {
    return user_error("npy header: wanted descr, fortran_order and shape");
  }
  return entries;
}

std::string_view descr_of(Type type) {
  switch (type) {
    case Type::pred:
      return "|b1";
    case Type::s8:
      return "|i1";
    case Type::s16:
      return "<i2";
    case Type::s32:
      return "<i4";
    case Type::s64:
      return "<i8";
    case Type::u8:
      return "|u1";
    case Type::u16:
      return "<u2";
    case Type::u32:
      return "<u4";
    case Type::u64:
      return "<u8";
    case Type::f16:
      return "<f2";
    case Type::f32:
      return "<f4";
    case Type::f64:
      return "<f8";
    case Type::c64:
      return "<c8";
    case Type::c128:
      return "<c16";
    case Type::bf16:
      return "|V2";
    default:
      return is_array_type(type) && type_bytes(type) == 1 ? "|V1" : "";
  }
}

uint32_t little_endian(std::string_view bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

}  // namespace

Result<int64_t> npy_header_bytes(std::string_view prefix) {
  if (prefix.size() < kNpyPrefixBytes || !prefix.starts_with(kMagic)) {
    return user_error("not an npy array: wanted the bytes \\x93NUMPY at its beginning");
  }
  int version = static_cast<uint8_t>(prefix[6]);
  if (version < 1 || version > 3) {
    return user_error("npy version {}: wanted 1, 2 or 3; save it with a newer numpy", version);
  }
  int64_t bytes = version == 1 ? 10 + int64_t{little_endian(prefix.substr(8), 2)}
                               : 12 + int64_t{little_endian(prefix.substr(8), 4)};
  if (bytes < kNpyPrefixBytes || bytes > kMaxHeaderBytes) {
    return user_error("npy header of {} bytes, wanted {} to {}: damaged?", bytes, kNpyPrefixBytes,
                      kMaxHeaderBytes);
  }
  return bytes;
}

Result<NpyHeader> parse_npy_header(std::string_view text) {
  HEDDLE_ASSIGN_OR_RETURN(int64_t bytes, npy_header_bytes(text));
  if (bytes != static_cast<int64_t>(text.size())) {
    return user_error("npy header of {} bytes, got {}: damaged?", bytes, text.size());
  }
  size_t begin = text[6] == 1 ? 10 : 12;
  HEDDLE_ASSIGN_OR_RETURN(Entries entries, parse_dictionary(text.substr(begin)));
  NpyHeader header;
  header.type = entries.type->type;
  header.fortran_order = *entries.fortran_order;
  header.dims = std::move(*entries.dims);
  header.text = entries.type->text_width >= 0;
  if (header.text) {
    if (header.fortran_order && header.dims.size() > 1)
      return user_error("strings in first-dimension-fastest order; save a copy in C order");
    header.fortran_order = false;
    header.dims.push_back(entries.type->text_width);
  }
  header.header_bytes = bytes;
  auto elems = checked_product(header.dims);
  if (!elems || __builtin_mul_overflow(*elems, type_bytes(header.type), &header.data_bytes)) {
    return user_error("npy header: the extents overflow 64 bits");
  }
  return header;
}

Result<std::string> make_npy_header(Type type, const std::vector<int64_t>& all, bool text_array) {
  std::string descr(descr_of(type));
  std::vector<int64_t> dims = all;
  if (text_array) {
    descr = fmt::format("<U{}", dims.back());
    dims.pop_back();
  }
  if (descr.empty()) return user_error("{} cannot be written as npy", type_name(type));
  std::string shape;
  for (int64_t dim : dims) shape += fmt::format("{}, ", dim);
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  if (dims.size() == 1) shape.resize(shape.size() - 1);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  size_t length = total - 10;
  if (length > 0xffff) return user_error("rank {} is too large for npy", dims.size());
  text.resize(length - 1, ' ');
  text += '\n';
  std::string result(kMagic);
  result += '\x01';
  result += '\0';
  result += static_cast<char>(length & 0xff);
  result += static_cast<char>(length >> 8);
  return result + text;
}

}  // namespace heddle::tensor
