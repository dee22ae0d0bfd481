// Errors inside this folder are exceptions: thrown where they are found, deep inside a handler, and
// converted to a Result at the folder's boundary (onnx.cc). No exception leaves the folder.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace heddle::import {

struct Value;  // onnx_op.h

struct Failure {
  Error error;
  // The value that would have to be known at import to avoid this error; null: none. It lives as
  // long as the Importer.
  const Value* needs = nullptr;
  bool placed = false;  // set by the first node walk that it leaves, which records later reads
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{Error{ErrorKind::user, fmt::format(format, std::forward<Args>(args)...)}, nullptr};
}

// The same, with a kind that callers can distinguish.
template <typename... Args>
[[noreturn]] void fail_as(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{Error{kind, fmt::format(format, std::forward<Args>(args)...)}, nullptr};
}

// The same as fail(), because of a value that is not known.
template <typename... Args>
[[noreturn]] void fail_needing(const Value* value, fmt::format_string<Args...> format,
                               Args&&... args) {
  throw Failure{Error{ErrorKind::user, fmt::format(format, std::forward<Args>(args)...)}, value};
}

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw Failure{std::move(result).error(), nullptr};
  return std::move(*result);
}

// A name from a file, in quotes, for use in one line: control characters and quotes escaped,
// shortened.
std::string quoted(std::string_view name);
// Escapes control characters: names in a message may contain any character.
Error one_line(Error error);

}  // namespace heddle::import
