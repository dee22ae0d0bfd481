// Puts the names of nodes on the instructions made for them.
#include <unordered_set>

#include "import/onnx_importer.h"

namespace heddle::import {

using hlo::NodeNames;
using proto::Node;

namespace {

constexpr int kMostReadThrough = 32;  // instructions in a row

bool is_given(const Instr* instr) {
  return instr->is(Opcode::parameter) || instr->is(Opcode::constant);
}

bool runs_computations(const Instr* instr) {
  return instr->is(Opcode::while_) || instr->is(Opcode::conditional) || instr->is(Opcode::call);
}

}  // namespace

// The node's name, else its first output's, else one from its operator and number.
std::string Importer::first_name_of(const Node& node) const {
  std::string_view name = node.name;
  for (std::string_view output : node.outputs)
    if (name.empty()) name = output;
  return caller_ + (name.empty() ? fmt::format("{}_{}", node.op_type, nodes_) : std::string(name));
}

NodeNames Importer::name_of(const Node& node) const { return NodeNames(first_name_of(node)); }

void Importer::name_structural(size_t first, const Node& node, Scope& scope, const Inputs& inputs) {
  // Known inputs are used at import here: a condition, a trip count.
  NodeNames names = name_of(node);
  names.add(nodes_of(inputs));
  name_new(*into_, first, names);
  // Also if no instruction of its own is left, because its subgraph was imported in place.
  for (std::string_view output : node.outputs)
    if (const auto found = scope.values.find(output); found != scope.values.end())
      add_nodes(*found->second, names);
}

NodeNames nodes_of(const std::vector<Value*>& values) {
  NodeNames names;
  for (const Value* value : values) {
    if (value == nullptr) continue;
    names.add(value->nodes);
    for (const Value* element : value->elements) names.add(element->nodes);
  }
  return names;
}

NodeNames nodes_read_through(const std::vector<Value*>& inputs, const hlo::Computation& computation,
                             size_t first, const Outputs& outputs) {
  std::unordered_set<const Instr*> read;
  const std::vector<Instr*>& instrs = computation.instrs();
  for (size_t i = first; i < instrs.size(); ++i)
    read.insert(instrs[i]->operands().begin(), instrs[i]->operands().end());
  for (const Output& output : outputs) {
    read.insert(output.instr);
    for (const Output& element : output.elements) read.insert(element.instr);
  }
  NodeNames names;
  for (const Value* input : inputs) {
    const Instr* at = input == nullptr ? nullptr : input->instr;
    NodeNames passed;
    for (int step = 0; at != nullptr && step < kMostReadThrough && !read.contains(at); ++step) {
      passed.add(at->nodes());
      at = at->operands().empty() ? nullptr : at->operand(0);
    }
    if (at != nullptr && read.contains(at)) names.add(passed);
  }
  return names;
}

void add_nodes(Value& value, const NodeNames& names) {
  for (Value* element : value.elements) add_nodes(*element, names);
  if (value.literal || value.instr == nullptr || is_given(value.instr)) {
    value.nodes.add(names);
  } else {
    value.instr->add_nodes(names);
  }
}

void name_new(const hlo::Computation& computation, size_t first, const NodeNames& names) {
  const std::vector<Instr*>& instrs = computation.instrs();
  for (size_t i = first; i < instrs.size(); ++i) {
    Instr* instr = instrs[i];
    if (instr->nodes().empty() && !is_given(instr)) instr->add_nodes(names);
    if (!runs_computations(instr)) continue;
    for (const hlo::Computation* called : instr->called()) name_new(*called, 0, names);
  }
}

}  // namespace heddle::import
