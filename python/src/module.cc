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
           nb::arg("late").none(), nb::arg("progress").none(),
           nb::sig("def __init__(self, model: str | bytes | tuple[collections.abc.Callable[[dict["
                   "str, int]], str], tuple[tuple[str, int, str], ...]], name: str, "
                   "open: dict[str, typing.Any], compile: dict[str, typing.Any], "
                   "late: bool | None, progress: collections.abc.Callable[[str, int, int, float], "
                   "typing.Any] | None) -> None"))
      .def("run", &Session::run, nb::arg("names").none(), nb::arg("inputs"),
           nb::arg("out").none() = nb::none(),
           nb::sig("def run(self, names: collections.abc.Sequence[str] | None, "
                   "inputs: collections.abc.Mapping[str, typing.Any] | "
                   "collections.abc.Sequence[typing.Any], out: dict[str, typing.Any] | "
                   "collections.abc.Sequence[typing.Any] | None = None) -> "
                   "list[typing.Any]"),
           "Runs once. names: which outputs (None: all). inputs: arrays by name or in order.\n"
           "out: arrays to write to, by name or in order. Gives the outputs, in order.\n\n"
           ">>> heddle.Session(\"model.onnx\").run([\"y\"], {\"x\": [[1, 2, 3]]})[0].shape\n"
           "(1, 4)")
      .def("cancel", &Session::cancel, nb::call_guard<nb::gil_scoped_release>(),
           "Ends the runs under way, which then raise heddle.Cancelled.\n\n"
           ">>> heddle.Session(\"model.onnx\").cancel()  # there are none")
      .def("_wait", &Session::wait, nb::arg("most_ms"))
      .def("_save", &Session::save, nb::arg("path"))
      // A port: its name, the number of its type, whether it is text, and where its rank is known
      // for each dimension the name, the extent, and the least and most that it can be.
      .def("_inputs", &Session::inputs,
           nb::sig("def _inputs(self) -> list[tuple[str, int, bool, list[tuple[str, int, int, int]]"
                   " | None]]"))
      .def("_outputs", &Session::outputs,
           nb::sig("def _outputs(self) -> list[tuple[str, int, bool, list[tuple[str, int, int, "
                   "int]] | None]]"))
      .def("_info", &Session::info, nb::sig("def _info(self) -> dict[str, typing.Any]"))
      .def("_notes", &Session::notes, nb::sig("def _notes(self) -> list[str]"))
      .def("_origin", &Session::origin, nb::sig("def _origin(self) -> dict[str, typing.Any]"))
      .def("_unbound", &Session::unbound, nb::sig("def _unbound(self) -> list[tuple[str, int]]"))
      .def_prop_ro("_is_late", &Session::is_late);
  module.def("option_names", &CompileOptions::names, nb::sig("def option_names() -> list[str]"),
             "Names of the options of a compilation, which are keywords of Session.\n\n"
             ">>> \"threads\" in heddle.option_names()\nTrue");
  module.def(
      "version",
      [] {
        const uint32_t version = heddle_version();
        return std::to_string(version / 1000000) + "." + std::to_string(version / 1000 % 1000) +
               "." + std::to_string(version % 1000);
      },
      "heddle's version: \"0.1.0\".");
  module.def(
      "type_name", [](int type) { return nb::str(heddle_type_name(type)); }, nb::arg("type"),
      "What heddle calls an element type: \"f32\".");
}
