#include "api/ports.h"

#include <limits>

namespace heddle::api {
namespace {

using tensor::Shape;

// Calls visit(".0.1") for every leaf of a shape; visit("") for a shape that is not a tuple.
template <typename Visit>
void for_each_leaf(const Shape& shape, const std::string& path, const Visit& visit) {
  if (!shape.is_tuple()) return visit(path);
  for (size_t i = 0; i < shape.elements().size(); ++i)
    for_each_leaf(shape.elements()[i], path + "." + std::to_string(i), visit);
}

}  // namespace

void append_leaves(const Shape& shape, std::vector<Shape>& leaves) {
  if (!shape.is_tuple()) {
    leaves.push_back(shape);
    return;
  }
  for (const Shape& element : shape.elements()) append_leaves(element, leaves);
}

Port make_port(std::string name, std::string alias, const Shape& shape) {
  Port port;
  port.name = std::move(name);
  port.alias = std::move(alias);
  port.shape = shape;
  if (!shape.is_array()) return port;
  port.dims = shape.extents();
  port.shape = Shape::array(shape.type(), port.dims);
  port.bytes = port.shape.bytes();
  for (int64_t extent : port.dims)
    if (extent < 0) port.bytes = std::numeric_limits<int64_t>::max();
  return port;
}

Port with_dims(const Port& port, const std::vector<int64_t>& dims) {
  Port made = make_port(port.name, port.alias, Shape::array(port.shape.type(), dims));
  made.is_text = port.is_text;
  made.named = port.named;
  return made;
}

Status check_ports(const std::vector<Port>& ports, const char* what) {
  for (const Port& port : ports) {
    if (port.bytes == std::numeric_limits<int64_t>::max())
      return user_error("{} {}: {} has no bound, or more bytes than can be counted", what,
                        port.name, tensor::to_string(port.shape));
    if (port.shape.type() == tensor::Type::opaque)
      return user_error("{} {}: an opaque value cannot be passed in or out", what, port.name);
  }
  return {};
}

void name_dims(const std::map<std::string, std::vector<std::string>>& names,
               std::vector<Port>& ports) {
  for (Port& port : ports) {
    const auto found = names.find(port.name);
    if (found == names.end() || found->second.size() != port.dims.size()) continue;
    port.named.resize(port.dims.size());
    for (size_t d = 0; d < port.dims.size(); ++d) port.named[d].name = found->second[d];
  }
}

Names hlo_names(const hlo::Module& module) {
  Names names;
  for (const hlo::Instr* parameter : module.entry()->parameters()) {
    for_each_leaf(parameter->shape(), "", [&](const std::string& path) {
      names.inputs.push_back(fmt::format("arg{}{}", parameter->parameter_number(), path));
      names.input_aliases.push_back(parameter->name() + path);
    });
  }
  for_each_leaf(module.entry()->root()->shape(), "", [&](const std::string&) {
    names.outputs.push_back(fmt::format("out{}", names.outputs.size()));
  });
  return names;
}

}  // namespace heddle::api
