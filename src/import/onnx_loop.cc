// Loop, Scan and SequenceMap. A loop whose values keep their shapes is a while; one that is short,
// or that carries sequences or growing values a known number of times, is written out.
#include <algorithm>

#include "import/onnx_emit.h"
#include "import/onnx_importer.h"

namespace heddle::import {

using proto::Graph;
using proto::Node;

namespace {

constexpr int64_t kShortLoop = 2;         // trips that are always written out
constexpr int64_t kMostTrips = 1 << 14;   // that are written out where they must be
constexpr int64_t kMostCopies = 1 << 17;  // nodes that writing out may make

const proto::Attribute* find_attr(const Node& node, std::string_view name) {
  for (const proto::Attribute& attribute : node.attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

Ints ints_attr(const Node& node, std::string_view name, size_t count) {
  const proto::Attribute* attribute = find_attr(node, name);
  if (attribute == nullptr) return Ints(count, 0);
  if (attribute->ints.size() != count)
    fail("{}: {} has {} entries, wanted {}", describe(node), name, attribute->ints.size(), count);
  return attribute->ints;
}

void check_body(const Node& node, const LoopForm& form) {
  const size_t inputs = carried_at(form) + form.carried.size() + form.scanned.size();
  const size_t outputs = (form.counts ? 1 : 0) + form.carried.size() + form.outputs.size();
  if (form.body->inputs.size() != inputs || form.body->outputs.size() != outputs)
    fail("{}: the body has {} inputs and {} outputs, wanted {} and {}", describe(node),
         form.body->inputs.size(), form.body->outputs.size(), inputs, outputs);
  for (const Value* value : form.carried) {
    if (value == nullptr) fail("{}: an initial value is missing", describe(node));
  }
}

}  // namespace

Value* Importer::apply(std::string_view op_type, const Inputs& inputs,
                       const std::vector<std::pair<std::string_view, int64_t>>& attributes,
                       const Node& caller) {
  Node node;
  node.name = caller.name;
  for (std::string_view output : caller.outputs)
    if (node.name.empty()) node.name = output;
  node.op_type = op_type;
  node.outputs = {"result"};
  for (const auto& [name, value] : attributes) {
    proto::Attribute& attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.type = proto::AttrType::int_;
    attribute.i = value;
  }
  Scope inner;
  Opsets opsets{{std::string_view(), kNewestOpset}};
  inner.opsets = &opsets;
  count_node();
  run_handler(node, inner, inputs);
  return inner.values.at("result");
}

// One slice of what is cut up, the axis gone.
Value* Importer::slice_of(Value* value, const LoopForm::Slices& slices, int64_t trip,
                          const Node& node) {
  const int64_t extent = value->shape().dim(slices.axis);
  const int64_t at = slices.reverse ? extent - 1 - trip : trip;
  return apply("Gather", {value, known_value(scalar_s64(at), "index")}, {{"axis", slices.axis}},
               node);
}

Value* Importer::stack(const std::vector<Value*>& slices, const LoopForm::Slices& how,
                       const Node& node) {
  Value sequence;
  sequence.kind = Value::Kind::sequence;
  sequence.elements = slices;
  if (how.reverse) std::reverse(sequence.elements.begin(), sequence.elements.end());
  return apply("ConcatFromSequence", {add_value(std::move(sequence))},
               {{"axis", how.axis}, {"new_axis", 1}}, node);
}

std::vector<Value*> Importer::unroll(const Node& node, const LoopForm& form, Scope& scope) {
  std::vector<Value*> carried = form.carried;
  std::vector<std::vector<Value*>> collected(form.outputs.size());
  const size_t at = carried_at(form);
  hlo::NodeNames conditions;
  const int64_t most =
      std::min(kMostTrips, kMostCopies / static_cast<int64_t>(form.body->nodes.size() + 1));
  for (int64_t trip = 0; !form.trip_count || trip < *form.trip_count; ++trip) {
    if (trip >= most) fail("{}: more than {} trips to write out", describe(node), most);
    Scope inner;
    inner.outer = &scope;
    inner.opsets = scope.opsets;
    inner.attributes = scope.attributes;
    const std::vector<proto::ValueInfo>& names = form.body->inputs;
    if (form.counts) {
      inner.values.emplace(names[0].name, known_value(scalar_s64(trip), names[0].name));
      inner.values.emplace(names[1].name, known_value(true_literal(), names[1].name));
    }
    for (size_t i = 0; i < carried.size(); ++i)
      inner.values.emplace(names[at + i].name, carried[i]);
    for (size_t i = 0; i < form.scanned.size(); ++i)
      inner.values.emplace(names[at + carried.size() + i].name,
                           slice_of(form.scanned[i], form.inputs[i], trip, node));
    run_graph(*form.body, inner);
    size_t output = 0;
    std::optional<bool> again = true;
    if (form.counts) {
      Value* condition = output_value(*form.body, output++, inner);
      check_condition(node, condition, "the body's");
      again = known_bool(condition);
      conditions.add(condition->nodes);
      if (!again)
        fail_needing(condition,
                     "{}: whether it continues after trip {} depends on the model's inputs",
                     describe(node), trip);
    }
    for (Value*& value : carried) value = output_value(*form.body, output++, inner);
    for (auto& slices : collected) slices.push_back(output_value(*form.body, output++, inner));
    if (!*again) break;
  }
  for (size_t i = 0; i < collected.size(); ++i) {
    if (collected[i].empty()) fail("{}: no trips", describe(node));
    for (const Value* slice : collected[i]) {
      if (!slice->is_tensor() || !(slice->shape() == collected[i][0]->shape()))
        fail("{}: scan output {} is not of one shape in all trips", describe(node), i);
    }
    LoopForm::Slices how = form.outputs[i];
    how.axis = wrap_axis(node, how.axis, collected[i][0]->shape().rank() + 1);
    carried.push_back(stack(collected[i], how, node));
  }
  if (!carried.empty()) add_nodes(*carried[0], conditions);
  return carried;
}

std::vector<Value*> Importer::run_loop_form(const Node& node, const LoopForm& form, Scope& scope) {
  check_body(node, form);
  constexpr int kDeepest = 100;
  if (depth_ >= kDeepest) fail("graphs nested more than {} deep", kDeepest);
  ++depth_;
  hlo::Computation* const outside = into_;
  const size_t demanded = demands_.size();
  const std::optional<bool> condition = known_bool(form.condition);
  const bool may_unroll =
      form.trip_count && condition == true && *form.trip_count > 0 &&
      *form.trip_count <= kMostTrips &&
      *form.trip_count * static_cast<int64_t>(form.body->nodes.size() + 1) <= kMostCopies;
  std::vector<Value*> result;
  const auto as_while = [&] {
    bool dynamic = condition != true;
    bool needs_condition = false;
    if (!dynamic) {
      result = emit_while(node, form, scope, false, needs_condition);
      dynamic = needs_condition;
    }
    if (!dynamic) return;
    if (!form.outputs.empty())
      fail_needing(form.condition,
                   "{}: how many slices it collects depends on a condition that is not known at "
                   "import",
                   describe(node));
    result = emit_while(node, form, scope, true, needs_condition);
  };
  // Its own condition ends it: in stages, each trip decides whether there is another one.
  const bool decides = options_.stages && form.trips == nullptr && !form.outputs.empty();
  if (decides && !condition)
    fail_needing(form.condition, "{}: whether it begins depends on the model's inputs",
                 describe(node));
  if (!form.trip_count && !form.outputs.empty() && !decides)
    fail_needing(form.trips, "{}: the trip count must be known at import where it collects outputs",
                 describe(node));
  const auto written_out = [&] {
    into_ = outside;
    result = unroll(node, form, scope);
  };
  const bool sequences = std::any_of(form.carried.begin(), form.carried.end(),
                                     [](const Value* value) { return !value->is_tensor(); });
  if (decides && condition == true) {
    written_out();
  } else if (may_unroll && *form.trip_count <= kShortLoop) {
    try {
      written_out();
    } catch (const Failure& failure) {
      if (!form.outputs.empty() || sequences) throw;
      into_ = outside;
      demands_.resize(demanded);
      as_while();
    }
  } else if (may_unroll) {
    try {
      as_while();
    } catch (const Failure&) {
      written_out();
    }
  } else if (form.trips == nullptr && !form.trip_count && condition == true) {
    // Only its own condition ends it. What no while can carry is written out trip by trip, as long
    // as that is known to be true.
    try {
      sequences ? written_out() : as_while();
    } catch (const Failure& failure) {
      if (sequences) throw;
      try {
        written_out();
      } catch (const Failure&) {
        throw failure;
      }
    }
  } else {
    try {
      as_while();
    } catch (Failure& failure) {
      into_ = outside;
      // It could be written out if these were known.
      failure.needs = form.trips != nullptr && !form.trip_count ? form.trips : form.condition;
      throw;
    }
  }
  into_ = outside;
  --depth_;
  return result;
}

namespace {

void define_all(const Node& node, const std::vector<Value*>& values, Scope& scope) {
  for (size_t i = 0; i < node.outputs.size() && i < values.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (!scope.values.emplace(node.outputs[i], values[i]).second)
      fail("{}: value {} is defined twice", describe(node), quoted(node.outputs[i]));
  }
}

}  // namespace

void Importer::run_loop(const Node& node, Scope& scope, const Inputs& inputs) {
  LoopForm form;
  form.body = &graph_attr(node, "body");
  form.counts = true;
  const auto at = [&](size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  form.trips = at(0);
  form.condition = at(1);
  check_condition(node, form.condition, "its");
  if (const Value* trips = form.trips;
      trips != nullptr &&
      (!trips->is_tensor() || trips->shape().elems() != 1 || trips->shape().type() != Type::s64))
    fail("{}: the trip count is {}, wanted one s64", describe(node),
         trips->is_tensor() ? to_string(trips->shape()) : "a sequence");
  if (form.trips != nullptr && form.trips->literal)
    form.trip_count = std::max<int64_t>(0, form.trips->literal->get_s64(0));
  if (known_bool(form.condition) == false) form.trip_count = 0;
  // Trailing inputs that are left out are dropped from the list, but the body has them.
  const size_t carried = node.inputs.size() > 2 ? node.inputs.size() - 2 : 0;
  for (size_t i = 0; i < carried; ++i) form.carried.push_back(at(i + 2));
  if (form.body->outputs.size() < 1 + carried)
    fail("{}: the body has {} outputs", describe(node), form.body->outputs.size());
  form.outputs.resize(form.body->outputs.size() - 1 - carried);
  if (node.outputs.size() > carried + form.outputs.size())
    fail("{}: {} outputs, the body gives {}", describe(node), node.outputs.size(),
         carried + form.outputs.size());
  if (form.trip_count == 0) form.condition = nullptr;
  if (const auto appended = run_ragged(node, form, scope))
    return define_all(node, *appended, scope);
  define_all(node, run_loop_form(node, form, scope), scope);
}

void Importer::run_scan(const Node& node, Scope& scope, const Inputs& inputs) {
  if (scope.opsets->at("") < 9) return run_old_scan(node, scope, inputs);
  LoopForm form;
  form.body = &graph_attr(node, "body");
  const proto::Attribute* count = find_attr(node, "num_scan_inputs");
  const auto all = static_cast<int64_t>(inputs.size());
  if (count == nullptr || count->i < 1 || count->i > all)
    fail("{}: num_scan_inputs is missing, or more than the {} inputs", describe(node), all);
  const auto scans = static_cast<size_t>(count->i), states = inputs.size() - scans;
  if (form.body->outputs.size() < states)
    fail("{}: the body has {} outputs for {} states", describe(node), form.body->outputs.size(),
         states);
  form.carried.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  form.scanned.assign(inputs.begin() + static_cast<std::ptrdiff_t>(states), inputs.end());
  const Ints axes = ints_attr(node, "scan_input_axes", scans);
  const Ints directions = ints_attr(node, "scan_input_directions", scans);
  for (size_t i = 0; i < scans; ++i) {
    const Value* value = form.scanned[i];
    if (value == nullptr || !value->is_tensor() || value->shape().rank() == 0)
      fail("{}: scan input {} is missing or a scalar", describe(node), i);
    const int64_t axis = wrap_axis(node, axes[i], value->shape().rank());
    form.inputs.push_back({axis, directions[i] != 0});
    const int64_t extent = value->shape().dim(axis);
    if (form.trip_count && *form.trip_count != extent)
      fail("{}: scan inputs have {} and {} slices", describe(node), *form.trip_count, extent);
    form.trip_count = extent;
  }
  const size_t collected = form.body->outputs.size() - states;
  const Ints output_axes = ints_attr(node, "scan_output_axes", collected);
  const Ints output_directions = ints_attr(node, "scan_output_directions", collected);
  for (size_t i = 0; i < collected; ++i)
    form.outputs.push_back({output_axes[i], output_directions[i] != 0});
  define_all(node, run_loop_form(node, form, scope), scope);
}

// Opset 8: everything has a batch dimension first, and the scan is along the second.
void Importer::run_old_scan(const Node& node, Scope& scope, const Inputs& inputs) {
  const Graph& body = graph_attr(node, "body");
  const proto::Attribute* count = find_attr(node, "num_scan_inputs");
  const auto all = static_cast<int64_t>(inputs.size());
  if (count == nullptr || count->i < 1 || count->i >= all)
    fail("{}: num_scan_inputs is missing, or more than the inputs", describe(node));
  if (inputs[0] != nullptr || find_attr(node, "directions") != nullptr)
    fail("{}: sequence_lens and directions of opset 8 are not supported", describe(node));
  const auto scans = static_cast<size_t>(count->i), states = inputs.size() - 1 - scans;
  std::optional<int64_t> batch;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Value* value = inputs[i];
    if (value == nullptr || !value->is_tensor() || value->shape().rank() < (i > states ? 2 : 1))
      fail("{}: input {} is missing, or has no batch dimension", describe(node), i);
    if (batch && *batch != value->shape().dim(0))
      fail("{}: batches of {} and {}", describe(node), *batch, value->shape().dim(0));
    batch = value->shape().dim(0);
  }
  constexpr int64_t kMostBatches = 64;
  if (*batch < 1 || *batch > kMostBatches || body.outputs.size() < states)
    fail("{}: {} batches, {} outputs of the body", describe(node), *batch, body.outputs.size());
  std::vector<std::vector<Value*>> by_output(body.outputs.size());
  for (int64_t n = 0; n < *batch; ++n) {
    LoopForm form;
    form.body = &body;
    for (size_t i = 1; i < inputs.size(); ++i)
      (i <= states ? form.carried : form.scanned).push_back(slice_of(inputs[i], {}, n, node));
    form.inputs.resize(scans);
    form.outputs.resize(body.outputs.size() - states);
    form.trip_count = form.scanned[0]->shape().dim(0);
    for (const Value* scanned : form.scanned) {
      if (scanned->shape().dim(0) != *form.trip_count)
        fail("{}: scan inputs differ in length", describe(node));
    }
    const std::vector<Value*> results = run_loop_form(node, form, scope);
    for (size_t i = 0; i < results.size(); ++i) by_output[i].push_back(results[i]);
  }
  std::vector<Value*> values;
  for (const auto& parts : by_output) values.push_back(stack(parts, {}, node));
  define_all(node, values, scope);
}

// The body once an element of the first sequence; other sequences go along, tensors are the same
// for all.
void Importer::run_sequence_map(const Node& node, Scope& scope, const Inputs& inputs) {
  const Graph& body = graph_attr(node, "body");
  if (inputs.empty() || inputs[0] == nullptr || inputs[0]->kind != Value::Kind::sequence)
    fail("{}: input 0 is not a sequence", describe(node));
  if (body.inputs.size() != inputs.size() || body.outputs.size() < node.outputs.size())
    fail("{}: the body has {} inputs and {} outputs", describe(node), body.inputs.size(),
         body.outputs.size());
  const size_t length = inputs[0]->elements.size();
  std::vector<Value> sequences(node.outputs.size());
  for (Value& sequence : sequences) sequence.kind = Value::Kind::sequence;
  for (size_t at = 0; at < length; ++at) {
    Scope inner;
    inner.outer = &scope;
    inner.opsets = scope.opsets;
    inner.attributes = scope.attributes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value* value = inputs[i];
      if (value != nullptr && value->kind == Value::Kind::sequence) {
        if (value->elements.size() != length)
          fail("{}: sequences of {} and {}", describe(node), length, value->elements.size());
        value = value->elements[at];
      }
      inner.values.emplace(body.inputs[i].name, value);
    }
    run_graph(body, inner);
    for (size_t i = 0; i < sequences.size(); ++i)
      sequences[i].elements.push_back(output_value(body, i, inner));
  }
  std::vector<Value*> values;
  for (Value& sequence : sequences) values.push_back(add_value(std::move(sequence)));
  define_all(node, values, scope);
}

}  // namespace heddle::import
