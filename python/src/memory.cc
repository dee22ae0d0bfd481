#include "memory.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Memory& memory = *nb::inst_ptr<Memory>(self);
  return PyBuffer_FillInfo(view, self, memory.data(), memory.bytes(), /*readonly=*/0, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void define_memory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory", nb::type_slots(slots),
                     "Bytes that outputs are written to; a buffer.");
}

}  // namespace heddle::python
