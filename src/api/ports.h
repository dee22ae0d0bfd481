// Private to api: ports from shapes, and the names of HLO inputs and outputs (CLI.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/session.h"
#include "hlo/module.h"

namespace heddle::api {

// The leaves of a shape, in order.
void append_leaves(const tensor::Shape& shape, std::vector<tensor::Shape>& leaves);

// `bytes` is INT64_MAX where the shape has no bound or overflows: see check_ports.
Port make_port(std::string name, std::string alias, const tensor::Shape& shape);
// The same port with these extents.
Port with_dims(const Port& port, const std::vector<int64_t>& dims);

// Error: a port for which memory cannot be allocated (`what`: "input").
Status check_ports(const std::vector<Port>& ports, const char* what);

// Sets the model's names of the ports' dimensions (import::Imported).
void name_dims(const std::map<std::string, std::vector<std::string>>& names,
               std::vector<Port>& ports);

struct Names {
  std::vector<std::string> inputs, input_aliases, outputs;
};
Names hlo_names(const hlo::Module& module);

}  // namespace heddle::api
