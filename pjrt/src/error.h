// Errors on their way to the caller.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "heddle/heddle.h"
#include "xla/pjrt/c/pjrt_c_api.h"

struct PJRT_Error {
  PJRT_Error_Code code;
  std::string message;
};

namespace heddle::pjrt {

// Thrown by what a function of the table does; becomes the PJRT_Error that it returns.
struct Failure {
  PJRT_Error_Code code;
  std::string message;
};

[[noreturn]] inline void fail(PJRT_Error_Code code, std::string message) {
  throw Failure{code, std::move(message)};
}
[[noreturn]] inline void invalid(std::string message) {
  fail(PJRT_Error_Code_INVALID_ARGUMENT, std::move(message));
}
[[noreturn]] inline void unimplemented(std::string message) {
  fail(PJRT_Error_Code_UNIMPLEMENTED, std::move(message));
}
// Throws where a pointer that is needed is null.
template <typename Pointer>
Pointer* given(Pointer* pointer, const char* argument) {
  if (pointer == nullptr) invalid(std::string(argument) + " is null");
  return pointer;
}

Failure failure_of(const heddle_status* status);
// Throws the status, which is then freed. NULL: nothing.
void check(heddle_status* status);
// The exception that is being handled.
Failure failure_of_exception() noexcept;
PJRT_Error* make_error(Failure failure) noexcept;
void free_error(PJRT_Error* error) noexcept;

}  // namespace heddle::pjrt
