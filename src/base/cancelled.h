// The end that the caller asked for, as an Error: neither the user's fault nor the machine's.
#pragma once

#include <utility>

#include "base/error.h"

namespace heddle {

inline constexpr ErrorKind kCancelled = static_cast<ErrorKind>(2);  // behind user and machine

template <typename... Args>
tl::unexpected<Error> cancelled_error(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{kCancelled, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace heddle
