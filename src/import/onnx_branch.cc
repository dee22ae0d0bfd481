// If; and regions: subgraphs inside nodes as separate computations.
#include <algorithm>
#include <set>

#include "import/onnx_emit.h"
#include "import/onnx_importer.h"

namespace heddle::import {

using proto::Attribute;
using proto::Graph;
using proto::Node;

namespace {

constexpr int kDeepest = 100;  // nested graphs

void collect_free(const Graph& graph, int depth, std::set<std::string_view>& seen,
                  std::vector<std::string_view>& names);

// Names read by the nodes but defined neither by them nor in `defined`, which gets their
// definitions.
void collect_read(std::span<const Node> nodes, int depth, std::set<std::string_view>& defined,
                  std::set<std::string_view>& seen, std::vector<std::string_view>& names) {
  const auto use = [&](std::string_view name) {
    if (!name.empty() && !defined.contains(name) && seen.insert(name).second) names.push_back(name);
  };
  for (const Node& node : nodes) {
    for (std::string_view input : node.inputs) use(input);
    for (const Attribute& attribute : node.attributes) {
      if (attribute.g == nullptr) continue;
      std::set<std::string_view> inner_seen;
      std::vector<std::string_view> inner;
      collect_free(*attribute.g, depth + 1, inner_seen, inner);
      for (std::string_view name : inner) use(name);
    }
    for (std::string_view output : node.outputs) defined.insert(output);
  }
}

// Names that a graph uses but does not define, including those of nested graphs; in order of use.
void collect_free(const Graph& graph, int depth, std::set<std::string_view>& seen,
                  std::vector<std::string_view>& names) {
  if (depth > kDeepest) fail("graphs nested more than {} deep", kDeepest);
  std::set<std::string_view> defined;
  for (const proto::ValueInfo& input : graph.inputs) defined.insert(input.name);
  for (const proto::Tensor& tensor : graph.initializers) defined.insert(tensor.name);
  collect_read(graph.nodes, depth, defined, seen, names);
  for (const proto::ValueInfo& output : graph.outputs)
    if (!output.name.empty() && !defined.contains(output.name) && seen.insert(output.name).second)
      names.push_back(output.name);
}

// Flattens a value into its tensors, sequences element by element.
void flatten(Value* value, std::vector<Value*>& tensors) {
  if (value->is_tensor()) tensors.push_back(value);
  for (Value* element : value->elements) flatten(element, tensors);
}

bool same_form(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.elements.size() != b.elements.size()) return false;
  if (a.is_tensor()) return a.shape() == b.shape();
  for (size_t i = 0; i < a.elements.size(); ++i) {
    if (!same_form(*a.elements[i], *b.elements[i])) return false;
  }
  return true;
}

// Appends the demands of both branches in one branch: those of the other one count as met.
void append_demands(hlo::Builder& b, const std::vector<IndexDemand> (&demands)[2], int side,
                    std::vector<Instr*>& results) {
  for (int of = 0; of < 2; ++of)
    for (const IndexDemand& demand : demands[of])
      results.push_back(of == side ? demand.worst : b.full(demand.worst->shape(), 0));
}

std::string form_text(const Value& value) {
  if (value.is_tensor()) return to_string(value.shape());
  if (value.kind == Value::Kind::nothing) return "nothing";
  return fmt::format("a sequence of {}", value.elements.size());
}

}  // namespace

std::vector<std::string_view> names_read(std::span<const Node> nodes) {
  std::set<std::string_view> defined, seen;
  std::vector<std::string_view> names;
  collect_read(nodes, 0, defined, seen, names);
  return names;
}

const Graph& graph_attr(const Node& node, std::string_view name) {
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == name && attribute.g != nullptr) return *attribute.g;
  }
  fail("{}: attribute {} is missing, or no graph", describe(node), quoted(name));
}

bool is_structural(const Node& node) {
  const std::string_view domain = normal_domain(node.domain);
  if (domain == "ai.onnx.preview") return node.op_type == "FlexAttention";
  return domain.empty() && (node.op_type == "If" || node.op_type == "Loop" ||
                            node.op_type == "Scan" || node.op_type == "SequenceMap");
}

// The outer values that a graph reads, in order; unknown names are reported later by the node that
// uses them.
std::vector<Value*> Importer::free_values(const Graph& graph, const Scope& scope,
                                          std::vector<std::string_view>& names) const {
  std::set<std::string_view> seen;
  std::vector<std::string_view> used;
  collect_free(graph, 0, seen, used);
  std::vector<Value*> values;
  for (std::string_view name : used) {
    bool known = false;
    Value* value = scope.find(name, known);
    if (!known) continue;
    names.push_back(name);
    values.push_back(value);
  }
  return values;
}

// The inner copy of an outer value that a region's nodes use.
Value* Importer::inside(Value* outer, const std::unordered_map<const Value*, Value*>& captured) {
  if (outer == nullptr) return nullptr;
  if (const auto found = captured.find(outer); found != captured.end()) return found->second;
  Value value;
  value.kind = outer->kind;
  value.literal = outer->literal;
  value.elsewhere = outer->elsewhere;
  value.rows = outer->rows;
  value.name = outer->name;
  value.nodes = outer->nodes;
  value.is_initialiser = outer->is_initialiser;
  for (Value* element : outer->elements) value.elements.push_back(inside(element, captured));
  return add_value(std::move(value));
}

std::unique_ptr<Region> Importer::open_region(const Graph& graph, const Scope& scope,
                                              std::string_view name,
                                              const std::vector<Shape>& first,
                                              const std::vector<Value*>& also) {
  auto region = std::make_unique<Region>();
  std::vector<std::string_view> names;
  const std::vector<Value*> values = free_values(graph, scope, names);
  std::vector<Value*> tensors = also;
  for (Value* value : values) {
    if (value != nullptr) flatten(value, tensors);
  }
  std::vector<Shape> shapes = first;
  std::set<const Value*> seen;
  for (Value* tensor : tensors) {
    if (tensor->literal || !seen.insert(tensor).second) continue;
    region->captured.push_back(tensor);
    shapes.push_back(tensor->shape());
  }
  region->computation = result_.module->add_computation(name);
  hlo::Builder builder(region->computation);
  region->parameter = builder.parameter(0, Shape::make_tuple(shapes), "state");
  std::unordered_map<const Value*, Value*> copies;
  for (size_t i = 0; i < region->captured.size(); ++i) {
    Instr* instr =
        builder.get_tuple_element(region->parameter, static_cast<int64_t>(first.size() + i));
    Value* copy = instr_value(instr, region->captured[i]->name);
    copy->nodes = region->captured[i]->nodes;
    copies[region->captured[i]] = copy;
  }
  region->scope.opsets = scope.opsets;
  region->scope.attributes = scope.attributes;
  for (Value* value : also) inside(value, copies);
  for (size_t i = 0; i < names.size(); ++i)
    region->scope.values.emplace(names[i], inside(values[i], copies));
  return region;
}

// Imports only the branch that runs, in place.
void Importer::run_in_place(const Graph& branch, const Node& node, Scope& scope) {
  Scope inner;
  inner.outer = &scope;
  inner.opsets = scope.opsets;
  inner.attributes = scope.attributes;
  run_graph(branch, inner);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty())
      define(node.outputs[i], output_value(branch, i, inner), scope, describe(node));
  }
}

// Both branches become computations of a conditional; they must give values of the same form.
void Importer::run_both(const Node& node, Scope& scope, Value* condition, const Graph& on_true,
                        const Graph& on_false) {
  hlo::Computation* const outside = into_;
  std::vector<Value*> results[2];
  std::unique_ptr<Region> regions[2];
  std::vector<Instr*> instrs[2];
  std::vector<IndexDemand> demands[2];
  for (int side = 0; side < 2; ++side) {
    const Graph& graph = side == 0 ? on_true : on_false;
    regions[side] = open_region(graph, scope, side == 0 ? "then" : "else", {}, {});
    Region& region = *regions[side];
    const InnerDemands inner(demands_);
    into_ = region.computation;
    run_graph(graph, region.scope);
    std::vector<Value*> tensors;
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      results[side].push_back(output_value(graph, i, region.scope));
      flatten(results[side].back(), tensors);
    }
    hlo::Builder builder(region.computation);
    for (Value* tensor : tensors) instrs[side].push_back(materialise(builder, *tensor));
    demands[side] = close_demands();
    into_ = outside;
  }
  for (int side = 0; side < 2; ++side) {
    hlo::Builder builder(regions[side]->computation);
    append_demands(builder, demands, side, instrs[side]);
    regions[side]->computation->set_root(builder.tuple(instrs[side]));
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    if (!same_form(*results[0][i], *results[1][i]))
      fail(
          "{}: output {} is {} in one branch and {} in the other; both must be equal if the "
          "condition is not known at import",
          describe(node), i, form_text(*results[0][i]), form_text(*results[1][i]));
  }
  hlo::Builder builder(into_);
  const size_t first = into_->instrs().size();
  Instr* operands[2];
  for (int side = 0; side < 2; ++side) {
    std::vector<Instr*> captured;
    for (Value* value : regions[side]->captured) captured.push_back(materialise(builder, *value));
    operands[side] = builder.tuple(captured);
  }
  Instr* predicate = builder.reshape(materialise(builder, *condition), {});
  Instr* both = builder.conditional(predicate, operands[0], regions[0]->computation, operands[1],
                                    regions[1]->computation);
  int64_t next = 0;
  const auto outer_value = [&](const auto& self, const Value& inner) -> Value* {
    Value value;
    value.kind = inner.kind;
    value.name = inner.name;
    if (inner.is_tensor()) value.instr = builder.get_tuple_element(both, next++);
    for (const Value* element : inner.elements) value.elements.push_back(self(self, *element));
    return add_value(std::move(value));
  };
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    Value* value = outer_value(outer_value, *results[0][i]);
    if (!node.outputs[i].empty()) define(node.outputs[i], value, scope, describe(node));
  }
  for (std::vector<IndexDemand>& side : demands) {
    const auto count = static_cast<int64_t>(side.size());
    take_over(std::move(side), both, next);
    next += count;
  }
  if (!builder.status()) fail("{}: {}", describe(node), builder.status().error().message);
  finish_instrs(first, node, name_of(node));
}

void Importer::run_if(const Node& node, Scope& scope, const Inputs& inputs) {
  if (inputs.size() != 1 || inputs[0] == nullptr) fail("{}: wanted one input", describe(node));
  Value& condition = *inputs[0];
  if (!condition.is_tensor() || condition.shape().type() != Type::pred ||
      condition.shape().elems() != 1)
    fail("{}: condition is {}, wanted one bool", describe(node), form_text(condition));
  const Graph& on_true = graph_attr(node, "then_branch");
  const Graph& on_false = graph_attr(node, "else_branch");
  for (const Graph* branch : {&on_true, &on_false}) {
    if (!branch->inputs.empty() || branch->outputs.size() != node.outputs.size())
      fail("{}: a branch has {} inputs and {} outputs, wanted none and {}", describe(node),
           branch->inputs.size(), branch->outputs.size(), node.outputs.size());
  }
  if (depth_ >= kDeepest) fail("graphs nested more than {} deep", kDeepest);
  ++depth_;
  if (condition.literal) {
    check_branch_of_rows(node, condition);
    run_in_place(condition.literal->get_s64(0) != 0 ? on_true : on_false, node, scope);
  } else {
    hlo::Computation* const outside = into_;
    try {
      run_both(node, scope, &condition, on_true, on_false);
    } catch (Failure& failure) {
      into_ = outside;
      failure.needs = &condition;  // with a known condition only one branch is imported
      throw;
    }
  }
  --depth_;
}

}  // namespace heddle::import
