// How errors travel inside this folder: thrown where they are found, deep inside a handler, and
// turned into a Result at the folder's border (onnx.cc). No exception leaves the folder.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace heddle::import {

struct Failure {
  Error error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{Error{ErrorKind::user, fmt::format(format, std::forward<Args>(args)...)}};
}

template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw Failure{std::move(result).error()};
  return std::move(*result);
}

// A name from a file, in quotes, fit for one line: control characters and quotes escaped,
// shortened.
std::string quoted(std::string_view name);

}  // namespace heddle::import
