// HEDDLE_CHECK: an internal invariant. A failure is a bug of ours: it prints place and reason and
// aborts. Never used for conditions that a user can cause; these are Errors (error.h).
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace heddle {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace heddle

// HEDDLE_CHECK(a == b, "rank {} against {}", a, b): the message is optional.
#define HEDDLE_CHECK(condition, ...)                                                         \
  do {                                                                                       \
    if (__builtin_expect(!(condition), 0))                                                   \
      ::heddle::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (0)

#define HEDDLE_UNREACHABLE(...) \
  ::heddle::check_failed(__FILE__, __LINE__, "unreachable", ::fmt::format("" __VA_ARGS__))
