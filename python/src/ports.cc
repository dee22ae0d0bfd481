#include "ports.h"

#include <nanobind/stl/string.h>

#include <utility>

#include "failure.h"

namespace nb = nanobind;

namespace heddle::python {
namespace {

using PortOf = void (*)(const heddle_program*, int64_t, heddle_port*);
using DimOf = heddle_status* (*)(const heddle_program*, int64_t, int64_t, heddle_port_dim*);

nb::object interned(const char* name) { return nb::steal(PyUnicode_InternFromString(name)); }

std::vector<Port> ports_of(const heddle_program* program, int64_t count, PortOf port_of,
                           DimOf dim_of) {
  std::vector<Port> all;
  for (int64_t i = 0; i < count; ++i) {
    heddle_port from{};
    from.struct_size = sizeof from;
    port_of(program, i, &from);
    Port port;
    port.name = from.name;
    port.alias = from.alias;
    port.key = interned(from.name);
    port.alias_key = interned(from.alias);
    check_python(port.key.is_valid() && port.alias_key.is_valid());
    port.type = from.type;
    port.is_text = from.is_text != 0;
    port.is_known = from.rank >= 0;
    for (int64_t d = 0; d < from.rank; ++d) {
      heddle_port_dim dim{};
      dim.struct_size = sizeof dim;
      check(dim_of(program, i, d, &dim));
      port.dims.push_back({dim.name, dim.extent, dim.least, dim.most});
    }
    all.push_back(std::move(port));
  }
  return all;
}

heddle_program_info info_of(const heddle_program* program) {
  heddle_program_info info{};
  info.struct_size = sizeof info;
  heddle_program_get_info(program, &info);
  return info;
}

}  // namespace

std::vector<Port> input_ports(const heddle_program* program) {
  return ports_of(program, info_of(program).inputs, heddle_program_input, heddle_program_input_dim);
}

std::vector<Port> output_ports(const heddle_program* program) {
  return ports_of(program, info_of(program).outputs, heddle_program_output,
                  heddle_program_output_dim);
}

nb::tuple describe(const Port& port) {
  nb::object dims = nb::none();
  if (port.is_known) {
    nb::list list;
    for (const Dim& dim : port.dims)
      list.append(nb::make_tuple(dim.name, dim.extent, dim.least, dim.most));
    dims = std::move(list);
  }
  return nb::make_tuple(port.name, port.type, port.is_text, dims);
}

std::string shape_text(heddle_type type, const int64_t* dims, size_t rank) {
  std::string text = std::string(heddle_type_name(type)) + "[";
  for (size_t d = 0; d < rank; ++d) text += (d > 0 ? "," : "") + std::to_string(dims[d]);
  return text + "]";
}

}  // namespace heddle::python
