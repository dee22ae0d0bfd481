#include "failure.h"

#include <nanobind/nanobind.h>

#include <utility>

namespace nb = nanobind;

namespace heddle::python {
namespace {

const char* kind_of(const heddle_status* status) {
  if (heddle_status_kind(status) == HEDDLE_CANCELLED) return "Cancelled";
  switch (heddle_status_code(status)) {
    case HEDDLE_CODE_UNSUPPORTED:
      return "UnsupportedOperators";
    case HEDDLE_CODE_SHAPE:
      return "ShapeError";
    case HEDDLE_CODE_MEMORY:
      return "OutOfMemory";
    case HEDDLE_CODE_DEVICE:
      return "DeviceError";
    default:
      break;
  }
  return heddle_status_kind(status) == HEDDLE_USER_ERROR ? "Error" : "MachineError";
}

}  // namespace

void fail(const char* kind, std::string message) { throw Failure{kind, std::move(message)}; }

void check(heddle_status* status) {
  if (status == nullptr) return;
  Failure failure{kind_of(status), heddle_status_message(status)};
  heddle_status_free(status);
  throw failure;
}

void check_python(bool ok) {
  if (!ok) throw nb::python_error();
}

void register_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const nb::object kind = nb::module_::import_("heddle.errors").attr(failure.kind);
      PyErr_SetString(kind.ptr(), failure.message.c_str());
    }
  });
}

}  // namespace heddle::python
