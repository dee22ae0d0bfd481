// Walks a graph in order: every node becomes instructions of the entry computation, or, where all
// that it needs is small and known, a known value.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "hlo/names.h"
#include "import/fold.h"
#include "import/onnx_model.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

using proto::Attribute;
using proto::Function;
using proto::Graph;
using proto::Node;

// The values that nodes of one graph or function body can see.
struct Scope {
  std::unordered_map<std::string_view, Value*> values;  // null: an optional input left out
  const Scope* outer = nullptr;                         // what a branch captures
  const Opsets* opsets = nullptr;
  const std::map<std::string_view, const Attribute*>* attributes = nullptr;  // of a function call

  Value* find(std::string_view name, bool& known) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto found = scope->values.find(name);
      if (found == scope->values.end()) continue;
      known = true;
      return found->second;
    }
    known = false;
    return nullptr;
  }
};

class Importer {
 public:
  Importer(const ModelFacts& facts, const Options& options, TensorSource& source, Imported& result)
      : facts_(facts), options_(options), source_(source), result_(result) {
    limits_.value_elems = options.max_value_elems;
    limits_.fold_elems = options.max_fold_elems;
    budget_.value_elems = options.max_fold_elems;
    budget_.work_elems = kFoldWork;
  }
  void run(const std::vector<Input>& inputs);

 private:
  // Elements of all folds together: more would be felt, and no model comes near it.
  static constexpr int64_t kFoldWork = int64_t{1} << 25;

  void run_graph(const Graph& graph, Scope& scope);
  void run_nodes(const std::vector<Node>& nodes, Scope& scope);
  void run_node(const Node& node, Scope& scope);
  void run_if(const Node& node, Scope& scope, const std::vector<Value*>& inputs);
  void run_function(const Function& function, const Node& node, Scope& scope,
                    const std::vector<Value*>& inputs);
  std::vector<Value*> inputs_of(const Node& node, const Scope& scope) const;
  Node resolve(const Node& node, const Scope& scope) const;
  bool small_and_known(const std::vector<Value*>& inputs) const;
  bool fold_node(const OpEntry& entry, const Node& node, int64_t opset,
                 const std::vector<Value*>& inputs, Scope& scope);
  Outputs emit_node(const OpEntry& entry, const Node& node, int64_t opset,
                    const std::vector<Value*>& inputs);
  void finish_instrs(size_t first, const Node& node);
  void define(std::string_view name, Value* value, Scope& scope, const std::string& where);
  void define_outputs(const Node& node, Outputs outputs, Scope& scope);
  Value* add_value(Value value) { return &values_.emplace_back(std::move(value)); }
  Value& output_value(const Graph& graph, size_t i, const Scope& scope) const;

  const ModelFacts& facts_;
  const Options& options_;
  TensorSource& source_;
  Imported& result_;
  Limits limits_;
  FoldBudget budget_;
  std::deque<Value> values_;  // addresses stay
  hlo::Computation* entry_ = nullptr;
  int64_t nodes_ = 0;
};

// metadata={op_type="MatMul" op_name="layer/MatMul"}: XLA's way to say where an instruction is
// from.
std::string metadata(const Node& node) {
  const auto escaped = [](std::string_view text) {
    std::string result;
    for (char c : text) {
      if (static_cast<unsigned char>(c) < 0x20) continue;
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
    return result;
  };
  const std::string_view name =
      !node.name.empty() || node.outputs.empty() ? node.name : node.outputs[0];
  return fmt::format("{{op_type=\"{}\" op_name=\"{}\"}}", escaped(node.op_type), escaped(name));
}

void Importer::define(std::string_view name, Value* value, Scope& scope, const std::string& where) {
  if (!scope.values.emplace(name, value).second)
    fail("{}: value {} is defined twice", where, quoted(name));
}

std::vector<Value*> Importer::inputs_of(const Node& node, const Scope& scope) const {
  std::vector<Value*> inputs;
  for (std::string_view name : node.inputs) {
    bool known = true;
    inputs.push_back(name.empty() ? nullptr : scope.find(name, known));
    if (!known)
      fail(
          "{}: input {} is not defined before it is used (nodes must stand in order, without "
          "cycles)",
          describe(node), quoted(name));
  }
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  return inputs;
}

// Attributes of a function's body that refer to the call's are replaced by them.
Node Importer::resolve(const Node& node, const Scope& scope) const {
  Node resolved = node;
  resolved.attributes.clear();
  for (const Attribute& attribute : node.attributes) {
    if (attribute.ref_attr_name.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    const auto found = scope.attributes->find(attribute.ref_attr_name);
    if (found == scope.attributes->end()) continue;  // left out by the caller: the default
    resolved.attributes.push_back(*found->second);
    resolved.attributes.back().name = attribute.name;
  }
  return resolved;
}

void check_arity(const OpEntry& entry, const Node& node, const std::vector<Value*>& inputs) {
  const auto count = static_cast<int>(inputs.size());
  if (count < entry.least_inputs || (entry.most_inputs >= 0 && count > entry.most_inputs))
    fail("{}: {} inputs, wanted {}{}", describe(node), count, entry.least_inputs,
         entry.most_inputs < 0                     ? " or more"
         : entry.most_inputs == entry.least_inputs ? ""
                                                   : fmt::format(" to {}", entry.most_inputs));
  for (int i = 0; i < count; ++i) {
    const bool required = i < entry.least_inputs || entry.most_inputs < 0;
    if (required && inputs[static_cast<size_t>(i)] == nullptr)
      fail("{}: input {} is missing", describe(node), i);
  }
  if (node.outputs.empty()) fail("{}: no outputs", describe(node));
}

bool Importer::small_and_known(const std::vector<Value*>& inputs) const {
  if (inputs.empty()) return false;
  for (const Value* input : inputs) {
    if (input == nullptr) continue;
    if (!input->literal || input->literal->elems() > limits_.fold_elems) return false;
  }
  return true;
}

// Runs the handler in a computation of its own and evaluates what it made. False: that cannot be
// evaluated here, nothing is changed.
bool Importer::fold_node(const OpEntry& entry, const Node& node, int64_t opset,
                         const std::vector<Value*>& inputs, Scope& scope) {
  hlo::Computation* scratch = result_.module->add_computation("fold");
  hlo::Builder builder(scratch);
  Op op(node, opset, inputs, builder, source_, limits_, true);
  Outputs outputs = entry.handler(op);
  op.check_builder();
  std::vector<Instr*> roots;
  for (const Output& output : outputs) {
    if (!output.literal) roots.push_back(output.instr);
  }
  const std::optional<std::vector<Literal>> values = fold(roots, budget_);
  if (values) {
    size_t next = 0;
    for (Output& output : outputs) {
      if (!output.literal) output = Output((*values)[next++]);
    }
    op.check_all_read();
    define_outputs(node, std::move(outputs), scope);
  }
  result_.module->remove_computation(scratch);
  return values.has_value();
}

void Importer::finish_instrs(size_t first, const Node& node) {
  const std::vector<Instr*>& instrs = entry_->instrs();
  std::string text;
  for (size_t i = first; i < instrs.size(); ++i) {
    Instr& instr = *instrs[i];
    if (!instr.shape().is_array() || instr.is(Opcode::constant)) continue;
    if (instr.shape().rank() > 2 * kMaxRank ||
        !sensible_extents(instr.shape().extents(), limits_.value_elems))
      fail("{}: makes a value of shape {}, at most {} elements are supported", describe(node),
           to_string(instr.shape()), limits_.value_elems);
    if (text.empty()) text = metadata(node);
    instr.annotations().emplace_back("metadata", text);
  }
}

Outputs Importer::emit_node(const OpEntry& entry, const Node& node, int64_t opset,
                            const std::vector<Value*>& inputs) {
  const size_t first = entry_->instrs().size();
  hlo::Builder builder(entry_);
  Op op(node, opset, inputs, builder, source_, limits_, false);
  Outputs outputs = entry.handler(op);
  op.check_builder();
  op.check_all_read();
  finish_instrs(first, node);
  return outputs;
}

void Importer::define_outputs(const Node& node, Outputs outputs, Scope& scope) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs.size())
      fail("{}: output {} ({}) is not one of this operator's", describe(node), i,
           quoted(node.outputs[i]));
    Value value;
    value.instr = outputs[i].instr;
    value.literal = std::move(outputs[i].literal);
    value.name = node.outputs[i];
    define(node.outputs[i], add_value(std::move(value)), scope, describe(node));
  }
}

void Importer::run_node(const Node& node, Scope& scope) {
  if (++nodes_ > options_.max_nodes) fail("more than {} nodes after inlining", options_.max_nodes);
  if (scope.attributes != nullptr) {
    for (const Attribute& attribute : node.attributes) {
      if (attribute.ref_attr_name.empty()) continue;
      const Node resolved = resolve(node, scope);
      --nodes_;
      return run_node(resolved, scope);
    }
  }
  const std::vector<Value*> inputs = inputs_of(node, scope);
  if (const Function* function = facts_.find_function(node))
    return run_function(*function, node, scope, inputs);
  if (node.op_type == "If") return run_if(node, scope, inputs);
  const OpEntry* entry = find_op(node.op_type);
  HEDDLE_CHECK(entry != nullptr, "preflight let {} through", describe(node));
  check_arity(*entry, node, inputs);
  const int64_t opset = scope.opsets->at("");
  if (small_and_known(inputs) && fold_node(*entry, node, opset, inputs, scope)) return;
  define_outputs(node, emit_node(*entry, node, opset, inputs), scope);
}

void Importer::run_nodes(const std::vector<Node>& nodes, Scope& scope) {
  for (const Node& node : nodes) run_node(node, scope);
}

void Importer::run_graph(const Graph& graph, Scope& scope) {
  for (const proto::Tensor& tensor : graph.initializers) {
    const std::string what = fmt::format("initialiser {}", quoted(tensor.name));
    Value value;
    value.literal = to_literal(tensor, source_, what);
    value.name = tensor.name;
    value.is_initialiser = true;
    // What is made of a large weight (its transpose) may be as large.
    limits_.value_elems = std::max(limits_.value_elems, value.literal->elems());
    define(tensor.name, add_value(std::move(value)), scope, what);
  }
  run_nodes(graph.nodes, scope);
}

Value& Importer::output_value(const Graph& graph, size_t i, const Scope& scope) const {
  const std::string_view name = graph.outputs[i].name;
  bool known = false;
  Value* value = scope.find(name, known);
  if (value == nullptr) fail("output {} is not produced by any node", quoted(name));
  return *value;
}

// The branch that runs is imported in place; the other one is not.
void Importer::run_if(const Node& node, Scope& scope, const std::vector<Value*>& inputs) {
  if (inputs.size() != 1 || inputs[0] == nullptr) fail("{}: wanted one input", describe(node));
  const std::optional<Literal>& condition = inputs[0]->literal;
  if (!condition)
    fail(
        "{}: the condition {} depends on the model's inputs; only branches that are decided at "
        "import are supported",
        describe(node), quoted(inputs[0]->name));
  if (condition->type() != Type::pred || condition->elems() != 1)
    fail("{}: condition is {}, wanted one bool", describe(node), to_string(condition->shape()));
  const std::string_view wanted = condition->get_s64(0) != 0 ? "then_branch" : "else_branch";
  const Graph* branch = nullptr;
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == wanted) branch = attribute.g.get();
  }
  if (branch == nullptr) fail("{}: attribute '{}' is missing", describe(node), wanted);
  if (!branch->inputs.empty() || branch->outputs.size() != node.outputs.size())
    fail("{}: {} has {} inputs and {} outputs, wanted none and {}", describe(node), wanted,
         branch->inputs.size(), branch->outputs.size(), node.outputs.size());
  Scope inner;
  inner.outer = &scope;
  inner.opsets = scope.opsets;
  inner.attributes = scope.attributes;
  run_graph(*branch, inner);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty())
      define(node.outputs[i], &output_value(*branch, i, inner), scope, describe(node));
  }
}

void Importer::run_function(const Function& function, const Node& node, Scope& scope,
                            const std::vector<Value*>& inputs) {
  if (inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    fail("{}: {} inputs and {} outputs, the function has {} and {}", describe(node), inputs.size(),
         node.outputs.size(), function.inputs.size(), function.outputs.size());
  std::map<std::string_view, const Attribute*> attributes;
  for (const Attribute& attribute : function.default_attributes)
    attributes[attribute.name] = &attribute;
  for (const Attribute& attribute : node.attributes) attributes[attribute.name] = &attribute;
  Scope inner;
  inner.opsets = &facts_.function_opsets.at(&function);
  inner.attributes = &attributes;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    define(function.inputs[i], i < inputs.size() ? inputs[i] : nullptr, inner, describe(node));
  run_nodes(function.nodes, inner);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    bool known = false;
    Value* value = inner.find(function.outputs[i], known);
    if (value == nullptr)
      fail("{}: the function does not produce its output {}", describe(node),
           quoted(function.outputs[i]));
    define(node.outputs[i], value, scope, describe(node));
  }
}

void Importer::run(const std::vector<Input>& inputs) {
  const Graph& graph = facts_.model->graph;
  if (graph.outputs.empty()) fail("the graph has no outputs");
  result_.module = std::make_unique<hlo::Module>(
      hlo::legal_name(graph.name.empty() ? std::string_view("model") : graph.name));
  entry_ = result_.module->add_computation("main");
  result_.module->set_entry(entry_);
  hlo::Builder builder(entry_);
  Scope scope;
  scope.opsets = &facts_.opsets;
  for (const Input& input : inputs) {
    Value value;
    value.name = input.name;
    const auto fixed = options_.values.find(std::string(input.name));
    if (fixed != options_.values.end()) {
      value.literal = fixed->second;
    } else {
      const auto number = static_cast<int64_t>(result_.input_names.size());
      value.instr = builder.parameter(number, input.shape, input.name);
      result_.input_names.emplace_back(input.name);
      result_.input_aliases.emplace_back();
    }
    define(input.name, add_value(std::move(value)), scope, "graph input");
  }
  run_graph(graph, scope);
  std::vector<Instr*> outputs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    outputs.push_back(materialise(builder, output_value(graph, i, scope)));
    result_.output_names.emplace_back(graph.outputs[i].name);
  }
  entry_->set_root(builder.tuple(outputs));
  if (!builder.status()) fail("{}", builder.status().error().message);
  entry_->remove_dead();
  result_.module->remove_dead_computations();
}

}  // namespace

void import_graph(const ModelFacts& facts, const std::vector<Input>& inputs, const Options& options,
                  TensorSource& source, Imported& result) {
  Importer(facts, options, source, result).run(inputs);
}

}  // namespace heddle::import
