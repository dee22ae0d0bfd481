#include "program/nodes_text.h"

#include <fmt/format.h>

#include "base/escape.h"

namespace heddle::program {

std::string nodes_text(const std::vector<std::string>& nodes, size_t most) {
  std::string text;
  for (size_t i = 0; i < nodes.size() && i < most; ++i)
    text += (i > 0 ? ", " : "") + escaped(nodes[i]);
  if (nodes.size() > most) text += fmt::format(" and {} more", nodes.size() - most);
  return text;
}

std::string where_text(const std::string& name, const std::vector<std::string>& nodes) {
  return nodes.empty() ? name : fmt::format("{} ({})", name, nodes_text(nodes, 2));
}

}  // namespace heddle::program
