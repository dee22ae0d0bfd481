// HEDDLE_CHECK: an invariant of ours. A failure is our bug: it prints where and why and aborts.
// Never used on what a user can cause; that is an Error (error.h).
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
