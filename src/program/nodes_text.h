// The names of a command's model nodes as readable text.
#pragma once

#include <string>
#include <vector>

namespace heddle::program {

// "layer/MatMul, layer/Add and 3 more": at most `most` names, control characters escaped.
std::string nodes_text(const std::vector<std::string>& nodes, size_t most);
// "add.82 (layer/MatMul and 3 more)": the instruction that a command came from, for messages.
std::string where_text(const std::string& name, const std::vector<std::string>& nodes);

}  // namespace heddle::program
