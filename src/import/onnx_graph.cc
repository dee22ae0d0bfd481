// Walks a graph in order: every node becomes instructions of the entry computation, or, if all the
// inputs it needs are small and known, a known value.
#include <algorithm>
#include <map>

#include "hlo/lexer.h"
#include "hlo/names.h"
#include "import/onnx_importer.h"
#include "tensor/limits.h"

namespace heddle::import {
namespace {

using proto::Attribute;
using proto::Function;
using proto::Graph;
using proto::Node;

// Some operators split dimensions in two.
static_assert(2 * kMaxRank <= tensor::kMaxRank);

// Limit on the elements of all folds together: more would take noticeable time, and no model comes
// near.
constexpr int64_t kFoldWork = int64_t{1} << 25;

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

// The number of nodes after inlining all function calls; any number above `most` if it exceeds
// that. Functions that call functions can double the count at each level, so each is counted once,
// before any work. Preflight has checked that there is no recursion.
int64_t written_out(const std::vector<Node>& nodes, const ModelFacts& facts, int64_t most,
                    std::map<const Function*, int64_t>& known) {
  int64_t count = 0;
  for (const Node& node : nodes) {
    ++count;
    for (const Attribute& attribute : node.attributes)
      if (attribute.g != nullptr) count += written_out(attribute.g->nodes, facts, most, known);
    if (const Function* function = facts.find_function(node)) {
      if (!known.contains(function))
        known[function] = written_out(function->nodes, facts, most, known);
      count += known[function];
    }
    if (count > most) return most + 1;
  }
  return count;
}

}  // namespace

Importer::Importer(const ModelFacts& facts, const Options& options, TensorSource& source,
                   Imported& result)
    : facts_(facts), options_(options), source_(source), result_(result) {
  limits_.value_elems = options.max_value_elems;
  limits_.fold_elems = options.max_fold_elems;
  limits_.same_for_all_extents = !options.bounded.empty();
  decisions_.options = &options;
  decisions_.calls = &result.counts;
  decisions_.guessed = &result.guessed;
  if (options.stages || options.max_count > 0) limits_.decisions = &decisions_;
  budget_.value_elems = options.max_fold_elems;
  budget_.work_elems = kFoldWork;
}

void Importer::define(std::string_view name, Value* value, Scope& scope, const std::string& where) {
  if (options_.stages && value != nullptr && into_ == entry_)
    name_computed(std::string(name), *value);
  if (!scope.values.emplace(name, value).second)
    fail("{}: value {} is defined twice", where, quoted(name));
}

Importer::Inputs Importer::inputs_of(const Node& node, const Scope& scope) const {
  Inputs inputs;
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

// Replaces attributes of a function's body that refer to the call's attributes.
Node Importer::resolve(const Node& node, const Scope& scope) const {
  Node resolved = node;
  resolved.attributes.clear();
  for (const Attribute& attribute : node.attributes) {
    if (attribute.ref_attr_name.empty()) {
      resolved.attributes.push_back(attribute);
      continue;
    }
    const auto found = scope.attributes->find(attribute.ref_attr_name);
    if (found == scope.attributes->end()) continue;  // omitted by the caller: the default
    resolved.attributes.push_back(*found->second);
    resolved.attributes.back().name = attribute.name;
  }
  return resolved;
}

bool Importer::small_and_known(const Inputs& inputs) const {
  const auto small = [&](const Value* tensor) {
    return tensor->literal && tensor->literal->elems() <= limits_.fold_elems;
  };
  for (const Value* input : inputs) {
    if (input == nullptr || input->kind == Value::Kind::nothing) continue;
    if (input->ragged) return false;
    if (input->is_tensor() ? !small(input)
                           : !std::all_of(input->elements.begin(), input->elements.end(), small))
      return false;
  }
  return !inputs.empty();
}

// Runs the handler in a scratch computation and evaluates the result. Nothing: cannot be evaluated
// here.
std::optional<Outputs> Importer::fold_node(const OpEntry& entry, const Node& node, int64_t opset,
                                           const Inputs& inputs) {
  auto outputs = fold_as_given(entry, node, opset, inputs, are_few_extents(inputs));
  if (outputs) fold_elsewhere(entry, node, opset, inputs, *outputs);
  return outputs;
}

std::optional<Outputs> Importer::fold_as_given(const OpEntry& entry, const Node& node,
                                               int64_t opset, const Inputs& inputs, bool few) {
  hlo::Computation* scratch = result_.module->add_computation("fold");
  hlo::Builder builder(scratch);
  Op op(node, opset, inputs, builder, source_, limits_, true);
  Outputs outputs = entry.handler(op);
  op.check_builder();
  std::vector<Output*> computed;
  for (Output& output : outputs) {
    if (output.instr != nullptr) computed.push_back(&output);
    for (Output& element : output.elements) {
      if (element.instr != nullptr) computed.push_back(&element);
    }
  }
  std::vector<Instr*> roots;
  for (const Output* output : computed) roots.push_back(output->instr);
  std::optional<std::vector<Literal>> values;
  if (op.take_demands().empty()) values = fold(roots, budget_);  // others cannot be checked here
  if (values && limits_.same_for_all_extents && !are_shape_arithmetic(*values, few)) values.reset();
  if (values) {
    for (size_t i = 0; i < computed.size(); ++i) {
      computed[i]->instr = nullptr;
      computed[i]->literal = (*values)[i];
    }
    op.check_all_read();
  }
  result_.module->remove_computation(scratch);
  if (!values) return std::nullopt;
  return outputs;
}

// The first output at each trip of the enclosing loop, if all inputs are known at each. Null
// otherwise.
std::shared_ptr<const std::vector<Literal>> Importer::fold_trips(const OpEntry& entry,
                                                                 const Node& node, int64_t opset,
                                                                 const Inputs& inputs) {
  size_t trips = 0;
  for (const Value* input : inputs) {
    if (input == nullptr) continue;
    if (!input->trips && !small_and_known({const_cast<Value*>(input)})) return nullptr;
    if (input->trips) trips = input->trips->size();
  }
  if (trips == 0 || node.outputs.size() != 1) return nullptr;
  auto table = std::make_shared<std::vector<Literal>>();
  for (size_t trip = 0; trip < trips; ++trip) {
    std::deque<Value> values;
    Inputs at;
    for (Value* input : inputs) {
      at.push_back(input);
      if (input == nullptr || !input->trips) continue;
      values.emplace_back();
      values.back().literal = input->trips->at(trip);
      at.back() = &values.back();
    }
    const std::optional<Outputs> outputs = fold_node(entry, node, opset, at);
    if (!outputs || outputs->size() != 1) return nullptr;
    const Output& output = outputs->front();
    const std::optional<Literal>& literal = output.same ? output.same->literal : output.literal;
    if (!literal) return nullptr;
    table->push_back(*literal);
  }
  return table;
}

void Importer::finish_instrs(size_t first, const Node& node, const hlo::NodeNames& names) {
  const std::vector<Instr*>& instrs = into_->instrs();
  const std::string type = hlo::quote(node.op_type);
  for (size_t i = first; i < instrs.size(); ++i) {
    Instr& instr = *instrs[i];
    if (!instr.shape().is_array() || instr.is(Opcode::constant)) continue;
    if (instr.shape().rank() > tensor::kMaxRank ||
        !sensible_extents(instr.shape().extents(), limits_.value_elems))
      fail("{}: makes a value of shape {}, at most {} elements are supported", describe(node),
           to_string(instr.shape()), limits_.value_elems);
    instr.annotations().emplace_back("metadata", fmt::format("{{op_type={}}}", type));
  }
  name_new(*into_, first, names);
}

Outputs Importer::emit_node(const OpEntry& entry, const Node& node, int64_t opset,
                            const Inputs& inputs, hlo::NodeNames& names) {
  const size_t first = into_->instrs().size();
  hlo::Builder builder(into_);
  Op op(node, opset, inputs, builder, source_, limits_, false);
  Outputs outputs = entry.handler(op);
  op.check_builder();
  op.check_all_read();
  check_numbers_of_rows(node, inputs, outputs);
  names.add(nodes_read_through(inputs, *into_, first, outputs));
  finish_instrs(first, node, names);
  for (std::string& note : op.take_notes()) result_.notes.push_back(std::move(note));
  for (IndexDemand& demand : op.take_demands()) {
    demand.names = names;
    demands_.push_back(std::move(demand));
  }
  return outputs;
}

Value* Importer::add_output(Output output, std::string_view name) {
  if (output.same != nullptr) return output.same;
  Value value;
  value.kind = output.kind;
  value.instr = output.instr;
  value.literal = std::move(output.literal);
  value.elsewhere = std::move(output.elsewhere);
  value.rows = std::move(output.rows);
  value.name = name;
  value.text = output.is_text;
  value.pieces = output.pieces;
  for (Output& element : output.elements)
    value.elements.push_back(add_output(std::move(element), name));
  return add_value(std::move(value));
}

void Importer::define_outputs(const Node& node, Outputs outputs, Scope& scope,
                              const hlo::NodeNames& names) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs.size())
      fail("{}: output {} ({}) is not one of this operator's", describe(node), i,
           quoted(node.outputs[i]));
    Value* value = add_output(std::move(outputs[i]), node.outputs[i]);
    add_nodes(*value, names);
    define(node.outputs[i], value, scope, describe(node));
  }
}

void Importer::count_node() {
  if (++nodes_ > options_.max_nodes) fail("more than {} nodes after inlining", options_.max_nodes);
}

void Importer::run_node(const Node& node, Scope& scope) {
  count_node();
  if (scope.attributes != nullptr) {
    for (const Attribute& attribute : node.attributes) {
      if (attribute.ref_attr_name.empty()) continue;
      const Node resolved = resolve(node, scope);
      --nodes_;
      return run_node(resolved, scope);
    }
  }
  const Inputs inputs = inputs_of(node, scope);
  if (const Function* function = facts_.find_function(node))
    return run_function(*function, node, scope, inputs);
  if (!is_structural(node)) return run_handler(node, scope, inputs);
  const size_t first = into_->instrs().size();
  run_structural(node, scope, inputs);
  name_structural(first, node, scope, inputs);
}

void Importer::run_structural(const Node& node, Scope& scope, const Inputs& inputs) {
  if (node.op_type == "If") return run_if(node, scope, inputs);
  check_numbers_of_rows(node, inputs, {});
  if (node.op_type == "Loop") return run_loop(node, scope, inputs);
  if (node.op_type == "Scan") return run_scan(node, scope, inputs);
  if (node.op_type == "SequenceMap") return run_sequence_map(node, scope, inputs);
  run_flex_attention(node, scope, inputs);
}

void Importer::run_handler(const Node& node, Scope& scope, const Inputs& inputs) {
  const OpEntry* entry = find_op(node);
  HEDDLE_CHECK(entry != nullptr, "preflight let {} through", describe(node));
  check_arity(*entry, node, inputs);
  const int64_t opset = scope.opsets->at(normal_domain(node.domain));
  hlo::NodeNames names = name_of(node);
  names.add(nodes_of(inputs));
  const bool moves_text = moves_texts(*entry, node, inputs);
  if (entry->folds && small_and_known(inputs) && !makes_open_rows(node, inputs)) {
    if (std::optional<Outputs> outputs = fold_node(*entry, node, opset, inputs)) {
      if (moves_text) mark_texts(*outputs);
      if (follows_extents(inputs, *outputs))
        compute_too(emit_node(*entry, node, opset, inputs, names), *outputs);
      return define_outputs(node, std::move(*outputs), scope, names);
    }
  }
  const bool finds = node.op_type == "NonZero" && !inputs.empty() && !node.outputs[0].empty();
  if (const auto found = found_.find({finds ? inputs[0] : nullptr, into_}); found != found_.end())
    return define(node.outputs[0], found->second, scope, describe(node));
  const auto trips = fold_trips(*entry, node, opset, inputs);
  if (trips && std::count(trips->begin(), trips->end(), trips->front()) == std::ssize(*trips))
    return define_outputs(node, {trips->front()}, scope, names);
  Outputs outputs = emit_node(*entry, node, opset, inputs, names);
  if (moves_text) mark_texts(outputs);
  define_outputs(node, std::move(outputs), scope, names);
  if (finds && !trips) found_[{inputs[0], into_}] = scope.values.at(node.outputs[0]);
  if (trips && !node.outputs[0].empty()) scope.values.at(node.outputs[0])->trips = trips;
}

void Importer::run_nodes(const std::vector<Node>& nodes, Scope& scope) {
  size_t at = 0;
  try {
    for (; at < nodes.size(); ++at) {
      behind_ = std::span(nodes).subspan(at + 1);
      run_node(nodes[at], scope);
    }
  } catch (Failure& failure) {
    if (options_.stages && failure.needs != nullptr)
      carry_what_is_read(std::span(nodes).subspan(at), scope, failure);
    throw;
  }
}

void Importer::run_graph(const Graph& graph, Scope& scope) {
  for (const proto::Tensor& tensor : graph.initializers) {
    const std::string what = fmt::format("initialiser {}", quoted(tensor.name));
    Value value;
    value.literal = to_literal(tensor, source_, what);
    value.name = tensor.name;
    value.is_initialiser = true;
    value.text = tensor.data_type == kStringType;
    // Values derived from a large weight (its transpose) may be as large.
    limits_.value_elems = std::max(limits_.value_elems, value.literal->elems());
    define(tensor.name, add_value(std::move(value)), scope, what);
  }
  for (const proto::ValueInfo& output : graph.outputs) scope.results.push_back(output.name);
  run_nodes(graph.nodes, scope);
}

Value* Importer::output_value(const Graph& graph, size_t i, const Scope& scope) const {
  const std::string_view name = graph.outputs[i].name;
  bool known = false;
  Value* value = scope.find(name, known);
  if (value == nullptr) fail("output {} is not produced by any node", quoted(name));
  return value;
}

Value* Importer::known_value(Literal literal, std::string_view name) {
  Value value;
  value.literal = std::move(literal);
  value.name = name;
  return add_value(std::move(value));
}

Value* Importer::instr_value(Instr* instr, std::string_view name) {
  Value value;
  value.instr = instr;
  value.name = name;
  return add_value(std::move(value));
}

void Importer::run_function(const Function& function, const Node& node, Scope& scope,
                            const Inputs& inputs) {
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
  inner.results = function.outputs;
  const std::string caller = caller_;
  caller_ = first_name_of(node) + "/";
  run_nodes(function.nodes, inner);
  caller_ = caller;
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

Value* Importer::parameter_value(hlo::Builder& builder, std::string_view name, const Shape& shape,
                                 bool text) {
  if (text) result_.texts.emplace(name);
  all_inputs_.emplace_back(name);
  const auto fixed = options_.values.find(std::string(name));
  if (fixed != options_.values.end()) {
    if (!(fixed->second.shape() == shape))
      fail("input {} is {}, its value is {}", quoted(name), to_string(shape),
           to_string(fixed->second.shape()));
    Value* value = known_value(fixed->second, name);
    value->text = text;
    return value;
  }
  const auto number = static_cast<int64_t>(result_.input_names.size());
  result_.input_names.emplace_back(name);
  result_.input_aliases.emplace_back();
  Value* value = instr_value(builder.parameter(number, shape, name), name);
  value->text = text;
  if (!options_.bounded.empty()) find_bounded(*value);
  return value;
}

std::string element_name(std::string_view sequence, size_t i) {
  return fmt::format("{}#{}", sequence, i);
}

void Importer::run(const std::vector<Input>& inputs) {
  const Graph& graph = facts_.model->graph;
  if (graph.outputs.empty()) fail("the graph has no outputs");
  std::map<const Function*, int64_t> known;
  if (written_out(graph.nodes, facts_, options_.max_nodes, known) > options_.max_nodes)
    fail("more than {} nodes after inlining", options_.max_nodes);
  result_.module = std::make_unique<hlo::Module>(
      hlo::legal_name(graph.name.empty() ? std::string_view("model") : graph.name));
  entry_ = into_ = result_.module->add_computation("main");
  result_.module->set_entry(entry_), name_extents();
  hlo::Builder builder(entry_);
  Scope scope;
  scope.opsets = &facts_.opsets;
  for (const Input& input : inputs) {
    Value* value = nullptr;
    if (input.kind == Value::Kind::tensor) {
      value = parameter_value(builder, input.name, input.shape, input.text);
    } else {
      Value other;
      other.kind = input.kind;
      other.name = input.name;
      for (size_t i = 0; i < input.elements.size(); ++i)
        other.elements.push_back(
            parameter_value(builder, element_name(input.name, i), input.elements[i], input.text));
      value = add_value(std::move(other));
    }
    define(input.name, value, scope, "graph input");
  }
  if (options_.ports_only) {
    entry_->set_root(builder.tuple({}));
    for (const proto::ValueInfo& output : graph.outputs)
      if (output.kind == proto::ValueInfo::Kind::tensor) {
        const bool text = output.elem_type == kStringType;
        if (text) result_.texts.emplace(output.name);
        result_.later_outputs.emplace_back(
            output.name, text ? tensor::kTextType
                              : element_type(output.elem_type, "output " + quoted(output.name)));
      }
    return;
  }
  run_graph(graph, scope);
  if (set_computed_extents()) return;
  std::vector<Instr*> outputs;
  const auto add = [&](Value* value, std::string name) {
    outputs.push_back(materialise(builder, *value));
    check_result_of_rows(*value);
    if (value->text) result_.texts.insert(name);
    result_.output_names.push_back(std::move(name));
  };
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    Value* value = output_value(graph, i, scope);
    const std::string_view name = graph.outputs[i].name;
    if (value->is_tensor()) add(value, std::string(name));
    for (size_t k = 0; k < value->elements.size(); ++k)
      add(value->elements[k], element_name(name, k));
  }
  check_demands(outputs);
  entry_->set_root(builder.tuple(outputs));
  if (!builder.status()) fail("{}", builder.status().error().message);
  for (const auto& computation : result_.module->computations()) computation->remove_dead();
  result_.module->remove_dead_computations();
}

}  // namespace heddle::import
