// Errors and results. Three kinds of refusal are distinguished where they arise
// (docs/architecture.md): a fault of the user or the machine (Error, in a Result), a bug of ours
// (HEDDLE_CHECK, check.h), and a refused optimisation (Decision, decision.h). Cancellation by the
// caller is an Error of its own kind. No exception crosses an interface.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace heddle {

enum class ErrorKind {
  user,       // bad file, unsupported operator, wrong shape: exit status 2
  machine,    // out of memory, no such device, cannot write: exit status 3
  cancelled,  // no fault: the caller cancelled
  // Subkinds of the user's errors and of the machine's, for callers (whose()).
  unsupported,  // an operator, or a type or form of it, that is not implemented
  shape,        // shapes that do not fit together
  value,        // a shape depends on a value that was not given
  memory,       // out of memory
  device,       // no device of that name, or it failed
};

// User, machine or cancelled, as in the exit status.
constexpr ErrorKind whose(ErrorKind kind) {
  if (kind == ErrorKind::unsupported || kind == ErrorKind::shape || kind == ErrorKind::value)
    return ErrorKind::user;
  if (kind == ErrorKind::memory || kind == ErrorKind::device) return ErrorKind::machine;
  return kind;
}

// One error: `message` is one line that says what, where, got, wanted and what to do.
struct Error {
  ErrorKind kind = ErrorKind::user;
  std::string message;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// user_error("dot {}: contracting dims {} and {} differ; transpose it?", name, a, b)
template <typename... Args>
tl::unexpected<Error> user_error(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{ErrorKind::user, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
tl::unexpected<Error> machine_error(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{ErrorKind::machine, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
tl::unexpected<Error> error_of(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{kind, fmt::format(format, std::forward<Args>(args)...)});
}

template <typename... Args>
tl::unexpected<Error> cancelled_error(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(
      Error{ErrorKind::cancelled, fmt::format(format, std::forward<Args>(args)...)});
}

// The same error prefixed with "where: ", as it is passed outwards.
inline tl::unexpected<Error> error_in(const std::string& where, Error error) {
  error.message = where + ": " + error.message;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace heddle

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)

// Returns the error of a Status or Result from the enclosing function, if it is one.
#define HEDDLE_RETURN_IF_ERROR(expression)                           \
  do {                                                               \
    if (auto heddle_status = (expression); !heddle_status)           \
      return tl::unexpected<::heddle::Error>(heddle_status.error()); \
  } while (0)

// HEDDLE_ASSIGN_OR_RETURN(auto x, f()): declares or assigns the value, or returns the error.
#define HEDDLE_ASSIGN_OR_RETURN(left, expression) \
  HEDDLE_ASSIGN_OR_RETURN_INNER(HEDDLE_CONCAT(heddle_result_, __LINE__), left, expression)
#define HEDDLE_ASSIGN_OR_RETURN_INNER(result, left, expression)                   \
  auto result = (expression);                                                     \
  if (!result) return tl::unexpected<::heddle::Error>(std::move(result).error()); \
  left = std::move(*result)
