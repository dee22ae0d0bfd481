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

// Names from a file may be no UTF-8.
nb::object text_of(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace

void fail(const char* kind, std::string message) { throw Failure{kind, std::move(message)}; }

void check(heddle_status* status) {
  if (status == nullptr) return;
  Failure failure{kind_of(status), heddle_status_message(status)};
  for (int64_t i = 0; i < heddle_status_unsupported_count(status); ++i) {
    heddle_unsupported one{};
    one.struct_size = sizeof one;
    heddle_status_unsupported(status, i, &one);
    failure.unsupported.push_back({{{"kind", one.kind},
                                    {"what", one.what},
                                    {"detail", one.detail},
                                    {"way_out", one.way_out},
                                    {"place", one.place}},
                                   {{"opset", one.opset}, {"count", one.count}}});
  }
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
      const nb::object error = kind(text_of(failure.message));
      nb::list all;
      for (const auto& [texts, numbers] : failure.unsupported) {
        nb::dict one;
        for (const auto& [name, value] : texts) one[name] = text_of(value);
        for (const auto& [name, value] : numbers) one[name] = value;
        all.append(one);
      }
      if (!failure.unsupported.empty()) error.attr("unsupported") = all;
      PyErr_SetObject(kind.ptr(), error.ptr());
    }
  });
}

}  // namespace heddle::python
