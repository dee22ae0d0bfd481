// Errors of heddle.hpp, which includes this header: exceptions, or values if HEDDLE_EXPECTED is
// defined before the first inclusion.
#ifndef HEDDLE_API_HEDDLE_ERROR_HPP
#define HEDDLE_API_HEDDLE_ERROR_HPP

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle.h"

#ifdef HEDDLE_EXPECTED
#include "heddle_expected.hpp"
// One program may use both kinds: their symbols differ, also from the library's own.
#define HEDDLE_INLINE_NAMESPACE expecting
#elif defined(__cpp_exceptions)
#define HEDDLE_INLINE_NAMESPACE throwing
#else
#error "without exceptions, define HEDDLE_EXPECTED before including heddle.hpp"
#endif

namespace heddle {
inline namespace HEDDLE_INLINE_NAMESPACE {

enum class ErrorKind {
  user = HEDDLE_USER_ERROR,
  machine = HEDDLE_MACHINE_ERROR,
  cancelled = HEDDLE_CANCELLED,
};

enum class ErrorCode {
  none = HEDDLE_CODE_NONE,
  unsupported = HEDDLE_CODE_UNSUPPORTED,
  shape = HEDDLE_CODE_SHAPE,
  memory = HEDDLE_CODE_MEMORY,
  device = HEDDLE_CODE_DEVICE,
  value = HEDDLE_CODE_VALUE,
};

// One kind of fault in a model that cannot be opened; see heddle_unsupported.
struct Unsupported {
  std::string kind, what, detail, way_out, place;
  std::int64_t opset = 0, count = 0;
};

// An error, with a message of one line: what, where, got, wanted, what to do. Copies are cheap and
// never fail.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, ErrorCode code, std::string message,
        std::vector<Unsupported> unsupported = {})
      : told_(std::make_shared<const Told>(
            Told{kind, code, std::move(message), std::move(unsupported)})) {}

  ErrorKind kind() const noexcept { return told_->kind; }
  ErrorCode code() const noexcept { return told_->code; }
  const std::string& message() const noexcept { return told_->message; }
  const char* what() const noexcept override { return told_->message.c_str(); }
  // For ErrorCode::unsupported: everything that the model needs and heddle lacks.
  const std::vector<Unsupported>& unsupported() const noexcept { return told_->unsupported; }

 private:
  struct Told {
    ErrorKind kind;
    ErrorCode code;
    std::string message;
    std::vector<Unsupported> unsupported;
  };
  std::shared_ptr<const Told> told_;
};

// By kind: a bad file, a wrong name, shape or option; a failure of the machine; cancellation.
struct UserError : Error {
  using Error::Error;
  explicit UserError(const Error& error) : Error(error) {}
};
struct MachineError : Error {
  using Error::Error;
  explicit MachineError(const Error& error) : Error(error) {}
};
struct Cancelled : Error {
  using Error::Error;
  explicit Cancelled(const Error& error) : Error(error) {}
};
// By code.
struct UnsupportedError : UserError {
  using UserError::UserError;
};
struct ShapeError : UserError {
  using UserError::UserError;
};
struct ValueError : UserError {
  using UserError::UserError;
};
struct OutOfMemory : MachineError {
  using MachineError::MachineError;
};
struct DeviceError : MachineError {
  using MachineError::MachineError;
};

#ifdef HEDDLE_EXPECTED
template <typename T>
using Result = expected<T, Error>;
#else
// The return type of functions that can fail: T itself, since they throw an Error.
template <typename T>
using Result = T;
#endif

namespace detail {

inline std::vector<Unsupported> unsupported_of(const heddle_status* status) {
  std::vector<Unsupported> all;
  const std::int64_t count = heddle_status_unsupported_count(status);
  for (std::int64_t i = 0; i < count; ++i) {
    heddle_unsupported from{};
    from.struct_size = sizeof from;
    heddle_status_unsupported(status, i, &from);
    all.push_back(
        {from.kind, from.what, from.detail, from.way_out, from.place, from.opset, from.count});
  }
  return all;
}

// Converts a status (not null) to an error and frees it.
inline Error taken(heddle_status* status) {
  const std::unique_ptr<heddle_status, void (*)(heddle_status*)> owner(status, heddle_status_free);
  return Error(static_cast<ErrorKind>(heddle_status_kind(status)),
               static_cast<ErrorCode>(heddle_status_code(status)), heddle_status_message(status),
               unsupported_of(status));
}

inline Error wrong(std::string message, ErrorCode code = ErrorCode::none) {
  return Error(ErrorKind::user, code, std::move(message));
}

#ifdef HEDDLE_EXPECTED

template <typename T>
Result<T> failed(Error error) {
  return Result<T>(unexpected<Error>(std::move(error)));
}
inline Result<void> done() { return {}; }
template <typename T>
bool is_ok(const expected<T, Error>& result) {
  return result.has_value();
}
template <typename T>
T taken_value(expected<T, Error>&& result) {
  return *std::move(result);
}

#else

[[noreturn]] inline void raise(const Error& error) {
  switch (error.code()) {
    case ErrorCode::unsupported:
      throw UnsupportedError(error);
    case ErrorCode::shape:
      throw ShapeError(error);
    case ErrorCode::value:
      throw ValueError(error);
    case ErrorCode::memory:
      throw OutOfMemory(error);
    case ErrorCode::device:
      throw DeviceError(error);
    case ErrorCode::none:
      break;
  }
  if (error.kind() == ErrorKind::cancelled) throw Cancelled(error);
  if (error.kind() == ErrorKind::machine) throw MachineError(error);
  throw UserError(error);
}

template <typename T>
[[noreturn]] Result<T> failed(const Error& error) {
  raise(error);
}
inline void done() {}

#endif

// Success (null), or the error of a status.
inline Result<void> checked(heddle_status* status) {
  if (status != nullptr) return failed<void>(taken(status));
  return done();
}

}  // namespace detail
}  // namespace HEDDLE_INLINE_NAMESPACE
}  // namespace heddle

// Private to these headers, for functions that return a Result<T>: return the error of a status, or
// of a Result; HEDDLE_TRY otherwise declares `name` with its value.
#define HEDDLE_CHECK_STATUS(T, call) \
  if (heddle_status* heddle_failed = (call)) return detail::failed<T>(detail::taken(heddle_failed))
#ifdef HEDDLE_EXPECTED
#define HEDDLE_TRY(T, name, call)                                                 \
  auto name##_result = (call);                                                    \
  if (!name##_result) return detail::failed<T>(std::move(name##_result).error()); \
  auto name = *std::move(name##_result)
#define HEDDLE_TRY_VOID(T, call) \
  if (auto heddle_result = (call); !heddle_result) return detail::failed<T>(heddle_result.error())
#else
#define HEDDLE_TRY(T, name, call) auto name = (call)
#define HEDDLE_TRY_VOID(T, call) (call)
#endif

#endif  // HEDDLE_API_HEDDLE_ERROR_HPP
