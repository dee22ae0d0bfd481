// Recognises a model's kind by its content.
#include <array>
#include <filesystem>

#include "hlo/module.h"
#include "import/hlo_proto.h"
#include "import/mapped_file.h"
#include "import/onnx.h"
#include "import/stablehlo.h"

namespace heddle::import {
namespace {

constexpr std::string_view kBytecodeMagic = "ML\xefR";
constexpr std::string_view kProgramMagic = "\x89HEDDLE";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

// The text without leading white space and comments of either format.
std::string_view skip_comments(std::string_view text) {
  while (!text.empty()) {
    if (is_space(text[0])) {
      text.remove_prefix(1);
    } else if (text.starts_with("//")) {
      text.remove_prefix(std::min(text.size(), text.find('\n')));
    } else if (text.starts_with("/*")) {
      const size_t end = text.find("*/");
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
    } else {
      break;
    }
  }
  return text;
}

std::string_view first_word(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && is_word(text[length])) ++length;
  return text.substr(0, length);
}

Format sniff_text(std::string_view text) {
  text = skip_comments(text);
  if (text.empty()) return Format::unknown;
  // Attribute and location aliases, and the generic form of an operation.
  if (text[0] == '#' || text[0] == '!' || text[0] == '"') return Format::stablehlo_text;
  const bool percent = text[0] == '%';
  if (percent) text.remove_prefix(1);
  const std::string_view word = first_word(text);
  if (word == "module" || word == "builtin.module" || word == "func.func")
    return Format::stablehlo_text;
  if (word == "HloModule" || word == "ENTRY") return Format::hlo_text;
  // A computation without a header, `name {` or `name (parameters) -> ... {`; one instruction,
  // `name = shape ...`.
  const std::string_view rest = skip_comments(text.substr(word.size()));
  if (!word.empty() && !rest.empty() && (rest[0] == '{' || rest[0] == '(' || rest[0] == '='))
    return Format::hlo_text;
  return Format::unknown;
}

// ModelProto begins with ir_version (field 1, a number) in all known exports; else with one of its
// other fields. HLO protos are recognised by their computations; a damaged one still begins with
// field 1 as a message or string.
Format sniff_proto(std::string_view bytes) {
  if (is_hlo_proto(bytes)) return Format::hlo_proto;
  const auto tag = static_cast<unsigned char>(bytes[0]);
  constexpr unsigned char kVarint = 0, kBytes = 2;
  const unsigned field = tag >> 3, wire = tag & 7;
  if (field == 1 && wire == kVarint) return Format::onnx;
  if (field == 1 && wire == kBytes) return Format::hlo_proto;
  if ((field >= 2 && field <= 8 && field != 5 && wire == kBytes) || (field == 5 && wire == kVarint))
    return Format::onnx;
  return Format::unknown;
}

}  // namespace

Format sniff(std::string_view bytes) {
  if (bytes.empty()) return Format::unknown;
  if (bytes.starts_with(kBytecodeMagic)) return Format::stablehlo_bytecode;
  if (bytes.starts_with(kProgramMagic)) return Format::program;
  if (bytes.starts_with("\xef\xbb\xbf")) bytes.remove_prefix(3);  // UTF-8 mark
  // Text has no control characters except white space; a message soon has some.
  bool text = true;
  for (char c : bytes.substr(0, 64)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 && !is_space(c)) text = false;
  }
  const Format format = text ? sniff_text(bytes) : Format::unknown;
  return format != Format::unknown || bytes.empty() ? format : sniff_proto(bytes);
}

bool is_comments(std::string_view text) { return skip_comments(text).empty(); }

bool is_stablehlo(Format format) {
  return format == Format::stablehlo_text || format == Format::stablehlo_bytecode;
}

std::string_view format_name(Format format) {
  switch (format) {
    case Format::onnx:
      return "ONNX";
    case Format::hlo_text:
      return "HLO text";
    case Format::stablehlo_text:
      return "StableHLO text";
    case Format::stablehlo_bytecode:
      return "StableHLO bytecode";
    case Format::hlo_proto:
      return "HLO proto";
    case Format::program:
      return "compiled program";
    case Format::unknown:
      break;
  }
  return "unknown";
}

Result<ModelFile> open_model_file(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const Format format = sniff(file->bytes());
  if (format == Format::unknown)
    return user_error("{}: not a model: neither ONNX nor HLO nor StableHLO nor a compiled program",
                      path);
  return ModelFile{std::move(file), format};
}

Result<Imported> import_model(const std::string& path, const Options& options) {
  HEDDLE_ASSIGN_OR_RETURN(const ModelFile opened, open_model_file(path));
  const auto& [file, format] = opened;
  if (format == Format::onnx) return import_onnx(path, options);
  if (format == Format::hlo_text) {
    if (!options.dims.empty() || !options.shapes.empty())
      return user_error("{}: --dim and --shape are for ONNX models; HLO text has fixed shapes",
                        path);
    Result<Imported> result = import_hlo_text(file->bytes(), options);
    if (!result) return error_in(path, result.error());
    return result;
  }
  if (is_stablehlo(format)) {
    Result<Imported> result = import_stablehlo_bytes(file->bytes(), options);
    if (!result) return error_in_file(path, result.error());
    return result;
  }
  if (format == Format::hlo_proto) {
    if (!options.dims.empty() || !options.shapes.empty())
      return user_error("{}: --dim and --shape are for ONNX models; an HLO proto has fixed shapes",
                        path);
    Result<Imported> result = import_hlo_proto(file->bytes(), file, options);
    if (!result) return error_in(path, result.error());
    return result;
  }
  return user_error("{}: {} cannot be imported yet; ONNX, HLO and StableHLO can", path,
                    format_name(format));
}

}  // namespace heddle::import
