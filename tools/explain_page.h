// The page of heddle explain --html: the commands of a run as a graph, drawn in layers, with what
// was decided for each behind a click. One file, nothing from outside.
#pragma once

#include <string>
#include <vector>

namespace heddle::tools {

struct PageNode {
  std::string name, kind, title, details;  // details: plain text, lines
  std::string operators;                   // plain text, a line each
  std::string label;                       // of its kernel: "softmax_select.2"; else operators
  std::vector<std::string> nodes;          // names of the model's own nodes that it does
  size_t phases = 0;                       // of a kernel
  double predicted_ms = 0, measured_ms = 0;
};

struct PageEdge {
  size_t from = 0, to = 0;
  std::string label;  // why it was not fused
  std::string code;
  double ms = 0;  // what that was judged to cost
};

struct Page {
  std::string title, summary;
  std::vector<PageNode> nodes;  // producers before consumers
  std::vector<PageEdge> edges;
  std::string memory_title, memory_svg;  // drawn above the graph, behind a click
};

// Kinds with colours of their own: "product", "reduction", "map", "copy"; others are grey.
std::string html_of(const Page& page);

struct NodePlace {
  int layer = 0, column = 0;
};
// Every node below all that it reads; inside a layer near what it is connected to.
std::vector<NodePlace> layout_of(const Page& page);

}  // namespace heddle::tools
