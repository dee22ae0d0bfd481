#include "input.h"

#include <cstring>

#include "failure.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

heddle_type signed_of(size_t bytes) {
  return bytes == 1 ? HEDDLE_S8 : bytes == 2 ? HEDDLE_S16 : bytes == 4 ? HEDDLE_S32 : HEDDLE_S64;
}

heddle_type unsigned_of(size_t bytes) {
  return bytes == 1 ? HEDDLE_U8 : bytes == 2 ? HEDDLE_U16 : bytes == 4 ? HEDDLE_U32 : HEDDLE_U64;
}

// Of a format of the module struct, in native order; -1: another one.
heddle_type type_of(const char* format) {
  if (format == nullptr) return HEDDLE_U8;
  if (*format == '@' || *format == '=') ++format;
  if (format[0] == 'Z' && format[1] != 0 && format[2] == 0)
    return format[1] == 'f' ? HEDDLE_C64 : format[1] == 'd' ? HEDDLE_C128 : -1;
  if (format[0] == 0 || format[1] != 0) return -1;
  switch (*format) {
    case '?':
      return HEDDLE_PRED;
    case 'b':
      return HEDDLE_S8;
    case 'B':
      return HEDDLE_U8;
    case 'h':
      return signed_of(sizeof(short));
    case 'H':
      return unsigned_of(sizeof(short));
    case 'i':
      return signed_of(sizeof(int));
    case 'I':
      return unsigned_of(sizeof(int));
    case 'l':
      return signed_of(sizeof(long));
    case 'L':
      return unsigned_of(sizeof(long));
    case 'q':
      return HEDDLE_S64;
    case 'Q':
      return HEDDLE_U64;
    case 'e':
      return HEDDLE_F16;
    case 'f':
      return HEDDLE_F32;
    case 'd':
      return HEDDLE_F64;
    default:
      return -1;
  }
}

}  // namespace

void Input::release() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

// False: it is not a dense buffer of a type that buffers have.
bool Input::take(nb::handle value, int flags) {
  release();
  if (!PyObject_CheckBuffer(value.ptr())) return false;
  if (PyObject_GetBuffer(value.ptr(), &view_, flags | PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    view_.obj = nullptr;
    if (PyErr_ExceptionMatches(PyExc_BufferError) == 0 &&
        PyErr_ExceptionMatches(PyExc_ValueError) == 0)
      throw nb::python_error();
    PyErr_Clear();
    return false;
  }
  type_ = type_of(view_.format);
  rank_ = view_.ndim;
  if (type_ < 0 || rank_ > kMostRank || heddle_type_bytes(type_) != view_.itemsize ||
      PyBuffer_IsContiguous(&view_, 'C') == 0) {
    release();
    return false;
  }
  for (int d = 0; d < rank_; ++d) dims_[d] = view_.shape[d];
  return true;
}

// `dense`: (bytes, number of the type, extents), as heddle._arrays gives it.
void Input::take_dense(const nb::object& dense, int flags) {
  if (!take(dense[0], flags))
    fail("InputError",
         flags == 0 ? "an array that cannot be read" : "an array that cannot be written");
  type_ = nb::cast<int>(dense[1]);
  const nb::object dims = dense[2];
  rank_ = static_cast<int>(nb::len(dims));
  if (rank_ > kMostRank) fail("ShapeError", "an array of more than 64 dimensions");
  for (int d = 0; d < rank_; ++d) dims_[d] = nb::cast<int64_t>(dims[d]);
}

void Input::read(nb::handle value, heddle_type wanted) {
  if (take(value, 0)) return;
  const nb::object arrays = nb::module_::import_("heddle._arrays");
  take_dense(arrays.attr("dense")(value, static_cast<int>(wanted)), 0);
}

void Input::read_writable(nb::handle value) {
  if (take(value, PyBUF_WRITABLE)) return;
  take_dense(nb::module_::import_("heddle._arrays").attr("writable")(value), PyBUF_WRITABLE);
}

}  // namespace heddle::python
