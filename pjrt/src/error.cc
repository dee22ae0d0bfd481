#include "error.h"

#include <exception>
#include <new>

#include "functions.h"

namespace heddle::pjrt {

Failure failure_of(const heddle_status* status) {
  const std::string message = heddle_status_message(status);
  switch (heddle_status_code(status)) {
    case HEDDLE_CODE_UNSUPPORTED:
      return {PJRT_Error_Code_UNIMPLEMENTED, message};
    case HEDDLE_CODE_MEMORY:
      return {PJRT_Error_Code_RESOURCE_EXHAUSTED, message};
    case HEDDLE_CODE_DEVICE:
      return {PJRT_Error_Code_UNAVAILABLE, message};
    default:
      break;
  }
  switch (heddle_status_kind(status)) {
    case HEDDLE_CANCELLED:
      return {PJRT_Error_Code_CANCELLED, message};
    case HEDDLE_MACHINE_ERROR:
      return {PJRT_Error_Code_INTERNAL, message};
    default:
      return {PJRT_Error_Code_INVALID_ARGUMENT, message};
  }
}

void check(heddle_status* status) {
  if (status == nullptr) return;
  const std::unique_ptr<heddle_status, decltype(&heddle_status_free)> owned(status,
                                                                            heddle_status_free);
  throw failure_of(status);
}

Failure failure_of_exception() noexcept {
  try {
    throw;
  } catch (Failure& failure) {
    return std::move(failure);
  } catch (const std::bad_alloc&) {
    return {PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory"};
  } catch (const std::exception& e) {
    return {PJRT_Error_Code_INTERNAL, e.what()};
  } catch (...) {
    return {PJRT_Error_Code_INTERNAL, "an unknown exception"};
  }
}

namespace {
PJRT_Error no_memory{PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory"};
}

PJRT_Error* make_error(Failure failure) noexcept {
  auto* error = new (std::nothrow) PJRT_Error{failure.code, std::move(failure.message)};
  return error != nullptr ? error : &no_memory;
}

void free_error(PJRT_Error* error) noexcept {
  if (error != &no_memory) delete error;
}

void Error_GetCode(PJRT_Error_GetCode_Args& args) { args.code = given(args.error, "error")->code; }

}  // namespace heddle::pjrt
