#include "ports.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <set>
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

void open_dims(const heddle_model* model, bool all, const nb::dict& fixed,
               std::vector<Port>& ports) {
  std::set<std::string> unbound;
  for (int64_t i = 0;; ++i) {
    const heddle_dim dim = heddle_model_unbound(model, i);
    if (dim.name == nullptr) break;
    unbound.insert(dim.name);
  }
  for (Port& port : ports)
    for (size_t d = 0; d < port.dims.size(); ++d) {
      Dim& dim = port.dims[d];
      const bool is_fixed = !dim.name.empty() && fixed.contains(dim.name.c_str());
      const bool is_open =
          all || !dim.name.empty() || unbound.contains(port.name + "[" + std::to_string(d) + "]");
      if (is_open && !is_fixed) dim.least = 0, dim.most = kNoBound;
    }
}

void find_times(heddle_program* program, std::vector<Port>& ports) {
  heddle_context* context = nullptr;
  check(heddle_context_create(program, &context));
  const auto accepts = [&](const std::string& name, int64_t extent) {
    heddle_status* const status = heddle_context_set_dim(context, name.c_str(), extent);
    heddle_status_free(status);
    return status == nullptr;
  };
  constexpr int64_t kMostTimes = 4096;
  for (Port& port : ports)
    for (Dim& dim : port.dims) {
      if (dim.least >= dim.most || is_sum(dim.name)) continue;
      dim.times = std::max<int64_t>(dim.least, 1);
      for (int64_t times = 1; times <= std::min(dim.most, kMostTimes); ++times) {
        const int64_t bound = dim.most / times;
        if (dim.most % times != 0 || !accepts(dim.name, bound) || accepts(dim.name, bound + 1))
          continue;
        dim.times = times;
        break;
      }
    }
  heddle_context_free(context);
}

bool is_sum(const std::string& name) {
  return name.find(" + ") != std::string::npos || name.find(" - ") != std::string::npos ||
         name.find('*') != std::string::npos;
}

std::optional<int64_t> extent_of(const std::string& name, const Extents& extents) {
  const auto number_of = [](const std::string& text) -> std::optional<int64_t> {
    if (text.empty() || text.size() > 18 ||
        text.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    return std::stoll(text);
  };
  if (const auto known = extents.find(name); known != extents.end()) return known->second;
  int64_t sum = 0, sign = 1;
  size_t at = 0;
  if (name.starts_with('-')) {
    sign = -1;
    at = 1;
  }
  while (at <= name.size()) {
    const size_t end = std::min({name.find(" + ", at), name.find(" - ", at), name.size()});
    const std::string term = name.substr(at, end - at);
    const size_t star = term.find('*');
    const auto factor = star == std::string::npos ? 1 : number_of(term.substr(0, star));
    const std::string rest = star == std::string::npos ? term : term.substr(star + 1);
    const auto known = extents.find(rest);
    const auto value = known != extents.end() ? known->second : number_of(rest);
    if (!factor || !value) return std::nullopt;
    sum += sign * *factor * *value;
    sign = end < name.size() && name[end + 1] == '-' ? -1 : 1;
    at = end + 3;
  }
  return sum;
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
