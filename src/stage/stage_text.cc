// Stage graphs as text, for explain, dumps and tests.
#include <algorithm>

#include "stage/stage_graph.h"

namespace heddle::stage {

namespace {

std::vector<std::string> digit_names(const Stage& stage) {
  std::vector<std::string> names;
  for (const Digit& digit : stage.out) names.push_back(digit.name);
  for (const Digit& digit : stage.red) names.push_back(digit.name);
  return names;
}

std::string guards_text(const std::vector<index::Guard>& guards,
                        const std::vector<std::string>& names) {
  std::string text;
  for (const index::Guard& guard : guards)
    text += fmt::format("{}{} <= {} < {}", text.empty() ? "" : " and ", guard.low,
                        index::to_string(guard.value, names), guard.high);
  return text;
}

std::string node_text(const StageGraph& graph, const Stage& stage, int number) {
  const Node& node = stage.nodes[number];
  std::vector<std::string> names = digit_names(stage);
  switch (node.kind) {
    case Node::Kind::constant: {
      if (tensor::is_float(node.type))
        return fmt::format("{}", tensor::float_from_bits(node.type, node.bits));
      return fmt::format("{}", static_cast<int64_t>(node.bits));
    }
    case Node::Kind::index:
      return fmt::format("index({})", index::to_string(node.index, names));
    case Node::Kind::guard:
      return fmt::format("({})", guards_text(node.guards, names));
    case Node::Kind::load: {
      const Load& load = stage.loads[node.load];
      std::string text = load.source.input >= 0 ? fmt::format("in{}", load.source.input)
                                                : graph.stage(load.source.stage).name;
      if (load.source.value > 0) text += fmt::format("#{}", load.source.value);
      text += "[";
      for (size_t i = 0; i < load.coordinates.size(); ++i)
        text += (i ? ", " : "") + index::to_string(load.coordinates[i], names);
      return text + "]";
    }
    case Node::Kind::op:
      break;
  }
  std::string text = fmt::format("{}{}(", hlo::opcode_text(node.opcode), node.fast ? ".fast" : "");
  for (size_t i = 0; i < node.operands.size(); ++i)
    text += fmt::format("{}%{}", i ? ", " : "", node.operands[i]);
  return text + ")";
}

}  // namespace

std::string to_string(const StageGraph& graph) {
  std::string text = fmt::format("stages {}\n", graph.name);
  static constexpr std::string_view kKinds[] = {"map",  "reduce",  "scan",   "dot",  "conv",
                                                "copy", "scatter", "opaque", "loop", "none"};
  for (const Stage& stage : graph.stages) {
    text += fmt::format("{} {} [", kKinds[static_cast<size_t>(stage.kind)], stage.name);
    for (size_t i = 0; i < stage.out.size(); ++i)
      text += fmt::format("{}{}={}", i ? ", " : "", stage.out[i].name, stage.out[i].extent);
    text += "]";
    if (!stage.red.empty()) {
      text += " over [";
      for (size_t i = 0; i < stage.red.size(); ++i)
        text += fmt::format("{}{}={}", i ? ", " : "", stage.red[i].name, stage.red[i].extent);
      text += "]";
    }
    text += " {\n";
    for (size_t i = 0; i < stage.nodes.size(); ++i)
      text += fmt::format("  %{}: {} = {}\n", i, tensor::type_name(stage.nodes[i].type),
                          node_text(graph, stage, static_cast<int>(i)));
    for (const Value& value : stage.values) {
      text += fmt::format("  value %{}", value.result);
      if (value.init >= 0) text += fmt::format(" from %{}", value.init);
      if (value.output >= 0) text += fmt::format(" -> out{}", value.output);
      if (value.output >= 0 && graph.outputs[static_cast<size_t>(value.output)].array >= 0)
        text += fmt::format(" in in{}", graph.outputs[static_cast<size_t>(value.output)].array);
      text += "\n";
    }
    text += "}\n";
  }
  return text;
}

}  // namespace heddle::stage
