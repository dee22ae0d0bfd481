// Values of attributes, by form.
#include "hlo/attr_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace heddle::hlo {
namespace {

template <size_t n>
bool is_one_of(std::string_view key, const std::string_view (&keys)[n]) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

constexpr std::string_view kAnnotationKeys[] = {
    "sharding",       "frontend_attributes", "statistics", "parameter_replication",
    "origin",         "original_value",      "metadata",   "backend_config",
    "result_accuracy"};
constexpr std::string_view kSourceTables[] = {"FileNames", "FunctionNames", "FileLocations",
                                              "StackFrames"};
constexpr std::string_view kCalleeKeys[] = {"to_apply",
                                            "condition",
                                            "body",
                                            "true_computation",
                                            "false_computation",
                                            "branch_computations",
                                            "select",
                                            "scatter",
                                            "calls",
                                            "called_computations"};

// "3x-1x2": numbers with `x` between them.
Result<Ints> sizes(Lexer& lexer) {
  Ints out;
  do {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value, lexer.integer("a number"));
    out.push_back(value);
    if (!lexer.next_is('x')) return out;
    lexer.advance(1);
  } while (true);
}

// "0_1x2_3_1": per dimension low, high and interior.
Result<PadAttrs> pads(Lexer& lexer) {
  PadAttrs out;
  do {
    int64_t values[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(values[i], lexer.integer("a padding"));
      if (!lexer.next_is('_')) {
        if (i == 0) return lexer.unexpected_here("'_' between low and high padding");
        break;
      }
      if (i < 2) lexer.advance(1);
    }
    out.low.push_back(values[0]);
    out.high.push_back(values[1]);
    out.interior.push_back(values[2]);
    if (!lexer.next_is('x')) return out;
    lexer.advance(1);
  } while (true);
}

Status set_window_field(Lexer& lexer, std::string_view field, Window& window) {
  const size_t at = lexer.offset();
  auto set = [&](size_t n, auto each) -> Status {
    if (window.dims.empty()) window.dims.resize(n);
    if (window.dims.size() != n)
      return lexer.error_at(at, "window: {} has {} dimensions, wanted {}", field, n,
                            window.dims.size());
    for (size_t i = 0; i < n; ++i) each(window.dims[i], i);
    return {};
  };
  if (field == "pad") {
    HEDDLE_ASSIGN_OR_RETURN(const PadAttrs pad, pads(lexer));
    for (int64_t interior : pad.interior)
      if (interior != 0) return lexer.error_at(at, "window: pad has no interior part");
    return set(pad.low.size(), [&](WindowDim& d, size_t i) {
      d.pad_low = pad.low[i];
      d.pad_high = pad.high[i];
    });
  }
  HEDDLE_ASSIGN_OR_RETURN(const Ints values, sizes(lexer));
  int64_t WindowDim::* member = nullptr;
  if (field == "size") member = &WindowDim::size;
  if (field == "stride") member = &WindowDim::stride;
  if (field == "lhs_dilate") member = &WindowDim::lhs_dilate;
  if (field == "rhs_dilate") member = &WindowDim::rhs_dilate;
  if (!member && field != "rhs_reversal")
    return lexer.error_at(at, "window: unknown field '{}'", field);
  const bool is_size = field == "size";
  for (int64_t value : values) {
    if (!member && (value == 0 || value == 1)) continue;
    if (member && value >= (is_size ? 0 : 1)) continue;
    return lexer.error_at(at, "window: {} is {}", field, value);
  }
  return set(values.size(), [&](WindowDim& d, size_t i) {
    if (member) {
      d.*member = values[i];
    } else {
      d.reversal = values[i] != 0;
    }
  });
}

// One part of dim_labels: two letters and the digits 0..n-1, each exactly once; `?` is an unused
// position.
std::string read_labels(std::string_view part, char first, char second, int64_t& first_place,
                        int64_t& second_place, Ints& spatial) {
  first_place = second_place = -1;
  const auto digits =
      std::count_if(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
  spatial.assign(digits, -1);
  for (size_t i = 0; i < part.size(); ++i) {
    const char c = part[i];
    if (c == '?') continue;
    int64_t* place = nullptr;
    if (c == first) place = &first_place;
    if (c == second) place = &second_place;
    if (c >= '0' && c - '0' < digits) place = &spatial[c - '0'];
    if (!place || *place >= 0) return fmt::format("'{}' does not belong in '{}'", c, part);
    *place = static_cast<int64_t>(i);
  }
  if (first_place < 0 || second_place < 0)
    return fmt::format("'{}' lacks '{}' or '{}'", part, first, second);
  return {};
}

}  // namespace

bool is_annotation_key(std::string_view key) { return is_one_of(key, kAnnotationKeys); }
bool is_callee_key(std::string_view key) { return is_one_of(key, kCalleeKeys); }
bool is_source_table(std::string_view key) { return is_one_of(key, kSourceTables); }

Result<Ints> read_index(Lexer& lexer) {
  HEDDLE_RETURN_IF_ERROR(lexer.expect('{', "before the numbers"));
  Ints out;
  while (!lexer.accept('}')) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value, lexer.integer("a number"));
    out.push_back(value);
    if (!lexer.accept(',') && lexer.peek() != '}')
      return lexer.unexpected_here("',' or '}' after a number");
  }
  return out;
}

AttrEntry* AttrReader::take(std::string_view key) {
  if (!status_) return nullptr;
  for (AttrEntry& entry : list_.entries) {
    if (entry.key != key || entry.used) continue;
    entry.used = true;
    return &entry;
  }
  return nullptr;
}

Lexer AttrReader::value_of(const AttrEntry& entry) const {
  const size_t begin = lexer_.offset_of(entry.raw);
  return lexer_.part(begin, begin + entry.raw.size());
}

void AttrReader::keep(const Status& status) {
  if (status_ && !status) status_ = status;
}

void AttrReader::fail(std::string_view key, std::string message) {
  if (!status_) return;
  size_t at = offset_;
  for (const AttrEntry& entry : list_.entries)
    if (entry.key == key) at = entry.offset;
  keep(lexer_.error_at(at, "{}: {}", what_, message));
}

void AttrReader::require(bool present, std::string_view key) {
  if (!present) fail("", fmt::format("needs the attribute '{}'", key));
}

Status AttrReader::check_all_used() const {
  if (!status_) return status_;
  for (const AttrEntry& entry : list_.entries)
    if (!entry.used)
      return lexer_.error_at(entry.offset, "unknown attribute '{}' of {}", entry.key, what_);
  return {};
}

// Nothing may follow the value.
void AttrReader::end_of(Lexer& lexer, std::string_view key) {
  if (status_ && !lexer.at_end()) {
    const size_t at = lexer.offset();
    keep(lexer_.error_at(at, "{}: the value of {} is malformed", what_, key));
  }
}

bool AttrReader::ints(std::string_view key, Ints& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  Result<Ints> read = read_index(lexer);
  if (!read) return keep(tl::unexpected(read.error())), false;
  out = std::move(*read);
  return true;
}

bool AttrReader::integer(std::string_view key, int64_t& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  Result<int64_t> read = lexer.integer("a number");
  if (!read) return keep(tl::unexpected(read.error())), false;
  out = *read;
  end_of(lexer, key);
  return true;
}

bool AttrReader::boolean(std::string_view key, bool& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  if (entry->raw != "true" && entry->raw != "false")
    return fail(key, fmt::format("{} is neither true nor false", key)), false;
  out = entry->raw == "true";
  return true;
}

bool AttrReader::number(std::string_view key, double& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  const char* last = entry->raw.data() + entry->raw.size();
  const auto end = std::from_chars(entry->raw.data(), last, out);
  if (end.ec != std::errc() || end.ptr != last || !std::isfinite(out))
    return fail(key, fmt::format("{} is not a number", key)), false;
  return true;
}

bool AttrReader::word(std::string_view key, std::string& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  out = lexer.word();
  if (out.empty()) fail(key, fmt::format("{} is not a word", key));
  end_of(lexer, key);
  return true;
}

bool AttrReader::words(std::string_view key, std::vector<std::string>& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  keep(lexer.expect('{', "before the words"));
  while (status_ && !lexer.accept('}')) {
    out.emplace_back(lexer.ident());
    if (out.back().empty()) keep(lexer.unexpected_here("a word"));
    if (status_ && !lexer.accept(',') && lexer.peek() != '}')
      keep(lexer.unexpected_here("',' or '}' after a word"));
  }
  return true;
}

bool AttrReader::quoted(std::string_view key, std::string& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  Result<std::string> read = lexer.quoted("a string");
  if (!read) return keep(tl::unexpected(read.error())), false;
  out = std::move(*read);
  return true;
}

bool AttrReader::raw(std::string_view key, std::string& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  out = squeeze_raw(entry->raw);
  return true;
}

// {size=2x2 stride=1x2 pad=0_1x0_1}
bool AttrReader::window(std::string_view key, Window& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  keep(lexer.expect('{', "before the window"));
  std::vector<std::string_view> seen;
  while (status_ && !lexer.accept('}')) {
    const std::string_view field = lexer.ident();
    if (field.empty()) return keep(lexer.unexpected_here("a field of the window")), false;
    if (std::find(seen.begin(), seen.end(), field) != seen.end())
      return fail(key, fmt::format("window: {} is given twice", field)), false;
    seen.push_back(field);
    keep(lexer.expect('=', "after the field"));
    if (status_) keep(set_window_field(lexer, field, out));
  }
  if (status_ && !seen.empty() && std::find(seen.begin(), seen.end(), "size") == seen.end())
    fail(key, "window: size is missing");
  return true;
}

bool AttrReader::dim_labels(std::string_view key, ConvolutionDims& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  const size_t split = entry->raw.find('_'), arrow = entry->raw.find("->");
  if (split == std::string_view::npos || arrow == std::string_view::npos || split > arrow)
    return fail(key, fmt::format("{} is not of the form b01f_01io->b01f", key)), false;
  std::string wrong = read_labels(entry->raw.substr(0, split), 'b', 'f', out.input_batch,
                                  out.input_feature, out.input_spatial);
  if (wrong.empty())
    wrong = read_labels(entry->raw.substr(split + 1, arrow - split - 1), 'i', 'o',
                        out.kernel_input_feature, out.kernel_output_feature, out.kernel_spatial);
  if (wrong.empty())
    wrong = read_labels(entry->raw.substr(arrow + 2), 'b', 'f', out.output_batch,
                        out.output_feature, out.output_spatial);
  if (wrong.empty() && (out.input_spatial.size() != out.kernel_spatial.size() ||
                        out.input_spatial.size() != out.output_spatial.size()))
    wrong = "its parts have different numbers of spatial dimensions";
  if (!wrong.empty()) fail(key, fmt::format("{}: {}", key, wrong));
  return true;
}

// {[0:4], [1:9:2]}
bool AttrReader::slices(std::string_view key, SliceAttrs& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  keep(lexer.expect('{', "before the slices"));
  while (status_ && !lexer.accept('}')) {
    int64_t values[3] = {0, 0, 1};
    keep(lexer.expect('[', "before a slice"));
    for (int i = 0; i < 3 && status_; ++i) {
      if (i > 0 && !lexer.accept(':')) {
        if (i == 1) keep(lexer.unexpected_here("':' in a slice"));
        break;
      }
      const Result<int64_t> read = lexer.integer("a bound of a slice");
      if (!read) return keep(tl::unexpected(read.error())), false;
      values[i] = *read;
    }
    if (status_) keep(lexer.expect(']', "after a slice"));
    out.starts.push_back(values[0]);
    out.limits.push_back(values[1]);
    out.strides.push_back(values[2]);
    if (status_ && !lexer.accept(',') && lexer.peek() != '}')
      keep(lexer.unexpected_here("',' or '}' after a slice"));
  }
  return true;
}

bool AttrReader::padding(std::string_view key, PadAttrs& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  Result<PadAttrs> read = pads(lexer);
  if (!read) return keep(tl::unexpected(read.error())), false;
  out = std::move(*read);
  end_of(lexer, key);
  return true;
}

// {{0,1},{1,0}}
bool AttrReader::pairs(std::string_view key, std::vector<std::pair<int64_t, int64_t>>& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  keep(lexer.expect('{', "before the pairs"));
  while (status_ && !lexer.accept('}')) {
    const Result<Ints> pair = read_index(lexer);
    if (!pair) return keep(tl::unexpected(pair.error())), false;
    if (pair->size() != 2) return fail(key, fmt::format("{}: wanted pairs", key)), false;
    out.emplace_back((*pair)[0], (*pair)[1]);
    if (!lexer.accept(',') && lexer.peek() != '}')
      keep(lexer.unexpected_here("',' or '}' after a pair"));
  }
  return true;
}

// {{0}: (1, {2}), {}: (0, {})}
bool AttrReader::aliasing(std::string_view key, std::vector<OutputOperandAlias>& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  Lexer lexer = value_of(*entry);
  auto row = [&]() -> Status {
    OutputOperandAlias alias;
    HEDDLE_ASSIGN_OR_RETURN(alias.output_index, read_index(lexer));
    HEDDLE_RETURN_IF_ERROR(lexer.expect(':', "after the output index"));
    HEDDLE_RETURN_IF_ERROR(lexer.expect('(', "before the operand"));
    HEDDLE_ASSIGN_OR_RETURN(alias.operand, lexer.integer("an operand number"));
    if (lexer.accept(',')) {
      HEDDLE_ASSIGN_OR_RETURN(alias.operand_index, read_index(lexer));
    }
    HEDDLE_RETURN_IF_ERROR(lexer.expect(')', "after the operand"));
    out.push_back(std::move(alias));
    if (lexer.accept(',') || lexer.peek() == '}') return {};
    return lexer.unexpected_here("',' or '}' after an alias");
  };
  keep(lexer.expect('{', "before the aliases"));
  while (status_ && !lexer.accept('}')) keep(row());
  return true;
}

bool AttrReader::called(std::string_view key, std::vector<Computation*>& out) {
  AttrEntry* entry = take(key);
  if (!entry) return false;
  out.insert(out.end(), entry->called.begin(), entry->called.end());
  return true;
}

std::string AttrReader::rest(std::initializer_list<std::string_view> keys) {
  std::string out;
  for (AttrEntry& entry : list_.entries) {
    if (!status_ || entry.used || std::find(keys.begin(), keys.end(), entry.key) == keys.end())
      continue;
    entry.used = true;
    if (!out.empty()) out += ", ";
    out += entry.key;
    out += '=';
    out += fold_raw(entry.raw, false);
  }
  return out;
}

int AttrReader::choice(std::string_view key, std::initializer_list<std::string_view> names) {
  AttrEntry* entry = take(key);
  if (!entry) return -1;
  const auto* found = std::find(names.begin(), names.end(), entry->raw);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  fail(key, fmt::format("{} is '{}', wanted one of {}", key, fold_raw(entry->raw, false),
                        fmt::join(names, ", ")));
  return -1;
}

}  // namespace heddle::hlo
