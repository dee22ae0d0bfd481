// heddle._core: the C interface for the Python files of this package.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "failure.h"
#include "log.h"
#include "memory.h"
#include "options.h"
#include "session.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  using namespace heddle::python;  // NOLINT: all of it
  nb::set_leak_warnings(false);    // sessions that live as long as the interpreter
  register_failures();
  watch_forks();
  define_memory(module);
  define_log(module);
  nb::class_<Session>(module, "Session")
      .def(nb::init<nb::handle, const std::string&, const nb::dict&, const nb::dict&, nb::handle,
                    nb::handle>(),
           nb::arg("model"), nb::arg("name"), nb::arg("open"), nb::arg("compile"),
           nb::arg("late").none(), nb::arg("progress").none())
      .def("run", &Session::run, nb::arg("names").none(), nb::arg("inputs"),
           nb::arg("out").none() = nb::none(),
           nb::sig("def run(self, names: collections.abc.Sequence[str] | None, "
                   "inputs: collections.abc.Mapping[str, typing.Any] | "
                   "collections.abc.Sequence[typing.Any], out: collections.abc.Mapping[str, "
                   "typing.Any] | collections.abc.Sequence[typing.Any] | None = None) -> "
                   "list[typing.Any]"),
           "Runs once. names: which outputs (None: all). inputs: arrays by name or in order.\n"
           "out: arrays to write to. See heddle.Session.")
      .def("cancel", &Session::cancel, nb::call_guard<nb::gil_scoped_release>(),
           "Ends the runs under way, which then raise heddle.Cancelled.")
      .def("_wait", &Session::wait, nb::arg("most_ms"))
      .def("_save", &Session::save, nb::arg("path"))
      .def("_inputs", &Session::inputs)
      .def("_outputs", &Session::outputs)
      .def("_info", &Session::info)
      .def("_notes", &Session::notes)
      .def("_origin", &Session::origin)
      .def("_unbound", &Session::unbound)
      .def_prop_ro("_is_late", &Session::is_late);
  module.def("option_names", &CompileOptions::names, "Names of the options of a compilation.");
  module.def("version", [] {
    const uint32_t version = heddle_version();
    return std::to_string(version / 1000000) + "." + std::to_string(version / 1000 % 1000) + "." +
           std::to_string(version % 1000);
  });
  module.def(
      "type_name", [](int type) { return nb::str(heddle_type_name(type)); }, nb::arg("type"),
      "What heddle calls an element type: \"f32\".");
}
