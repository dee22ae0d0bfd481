// For measuring programs: a result, or the end with its error.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error.h"

template <typename T>
T take(heddle::Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "error: {}\n", result.error().message);
  std::exit(2);
}

inline void done(const heddle::Status& status) {
  if (status) return;
  fmt::print(stderr, "error: {}\n", status.error().message);
  std::exit(2);
}
