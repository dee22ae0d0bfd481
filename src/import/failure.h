// How errors travel inside this folder: thrown where they are found, deep inside a handler, and
// turned into a Result at the folder's border (onnx.cc). No exception leaves the folder.
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
  // The value that would have to be known at import for this not to happen; null: none. It lives as
  // long as the Importer.
  const Value* needs = nullptr;
  bool placed = false;  // on its way out it has passed the nodes that were being walked over
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{Error{ErrorKind::user, fmt::format(format, std::forward<Args>(args)...)}, nullptr};
}

// The same, of a kind that callers tell apart.
template <typename... Args>
[[noreturn]] void fail_as(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{Error{kind, fmt::format(format, std::forward<Args>(args)...)}, nullptr};
}

// The same as fail(), for want of a value.
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

// A name from a file, in quotes, fit for one line: control characters and quotes escaped,
// shortened.
std::string quoted(std::string_view name);
// Names in a message may have any characters: control characters are escaped.
Error one_line(Error error);

}  // namespace heddle::import
