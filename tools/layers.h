// The layers of a model, from the names of its nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "repeats.h"

namespace heddle::tools {

// What a node is part of: its name up to the first part with a number
// ("/encoder/layer.0/attention/MatMul": "/encoder/layer.0"), else all but the last part; a name
// without parts is itself a layer.
std::string layer_of_node(std::string_view name);

struct CommandLayers {
  std::vector<std::string> names;  // each once, by their first commands
  std::vector<size_t> of;          // by command
};
// Of commands by the first node of each. Those that tell no layer (no node, or a node without
// parts) have that of their place in a repeat, "part 2 of 12", else their own name.
CommandLayers layers_of(const std::vector<std::string>& commands,
                        const std::vector<std::string>& first_nodes,
                        const std::vector<Repeat>& repeats);

}  // namespace heddle::tools
