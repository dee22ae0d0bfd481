// A loop as a while. Its state: trip number, condition (if dynamic), carried values, captures of
// the body, collected outputs (whose shapes become known last), and the worst positions that the
// body uses (onnx_index_checks.cc).
#include <algorithm>

#include "import/onnx_importer.h"

namespace heddle::import {

using proto::Node;

std::optional<bool> known_bool(const Value* value) {
  if (value == nullptr) return true;
  const Literal* literal = value->literal ? &*value->literal : nullptr;
  if (literal == nullptr || literal->type() != Type::pred || literal->elems() != 1)
    return std::nullopt;
  return literal->get_s64(0) != 0;
}

void check_condition(const Node& node, const Value* value, const char* whose) {
  if (value != nullptr &&
      (!value->is_tensor() || value->shape().elems() != 1 || value->shape().type() != Type::pred))
    fail("{}: {} condition is {}, wanted one bool", describe(node), whose,
         value->is_tensor() ? to_string(value->shape()) : "a sequence");
}

int64_t wrap_axis(const Node& node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    fail("{}: axis {} is out of range for rank {}", describe(node), axis, rank);
  return axis < 0 ? axis + rank : axis;
}

Literal scalar_s64(int64_t value) {
  Literal literal(Shape::scalar(Type::s64));
  literal.set_s64(0, value);
  return literal;
}

Literal true_literal() {
  Literal literal(Shape::scalar(Type::pred));
  literal.set_s64(0, 1);
  return literal;
}

struct Importer::While {
  Importer& importer;
  const Node& node;
  const LoopForm& form;
  Scope& scope;
  bool dynamic_condition;
  std::vector<Shape> state{};  // shapes
  std::unique_ptr<Region> region{};
  std::vector<Value*> results{};  // of the body: carried, then slices
  Value* again = nullptr;
  std::vector<IndexDemand> demands{};

  int64_t carried_begin() const { return dynamic_condition ? 2 : 1; }
  int64_t captured_begin() const {
    return carried_begin() + static_cast<int64_t>(form.carried.size());
  }
  int64_t collected_begin() const {
    return captured_begin() + static_cast<int64_t>(region->captured.size());
  }
  int64_t demands_begin() const {
    return collected_begin() + static_cast<int64_t>(form.outputs.size());
  }
  int64_t place_of(const Value* captured) const {
    const auto found = std::find(region->captured.begin(), region->captured.end(), captured);
    return captured_begin() + (found - region->captured.begin());
  }
  void check(const hlo::Builder& b) const {
    if (!b.status()) fail("{}: {}", describe(node), b.status().error().message);
  }
  int64_t axis_of(size_t output) const {
    const int64_t rank = results[form.carried.size() + output]->shape().rank();
    return wrap_axis(node, form.outputs[output].axis, rank + 1);
  }

  void open();
  bool run_body();
  void check_results();
  void close_body();
  hlo::Computation* condition();
  std::vector<Value*> call();
  std::vector<Value*> nothing_done();

  // The trip's position, counted from the end if `reverse`.
  static Instr* position(hlo::Builder& b, Instr* trip, int64_t count, bool reverse) {
    if (!reverse) return trip;
    return b.binary(Opcode::subtract, b.constant(scalar_s64(count - 1)), trip);
  }
  Instr* slice(hlo::Builder& b, Instr* trip, size_t i);
};

void Importer::While::open() {
  state.push_back(Shape::scalar(Type::s64));
  if (dynamic_condition) state.push_back(Shape::scalar(Type::pred));
  for (const Value* value : form.carried) {
    if (!value->is_tensor()) fail("{}: carries a sequence", describe(node));
    state.push_back(value->shape());
  }
  std::vector<Value*> also = form.scanned;
  if (form.trips != nullptr && !form.trip_count) also.push_back(form.trips);
  region = importer.open_region(*form.body, scope, "body", state, also);
}

// The slice of scanned input i for a trip.
Instr* Importer::While::slice(hlo::Builder& b, Instr* trip, size_t i) {
  const Value& scanned = *form.scanned[i];
  Instr* all = scanned.literal ? b.constant(*scanned.literal)
                               : b.get_tuple_element(region->parameter, place_of(&scanned));
  const LoopForm::Slices& how = form.inputs[i];
  Ints extents = all->shape().extents();
  const auto axis = static_cast<size_t>(how.axis);
  std::vector<Instr*> starts(extents.size(), b.constant(scalar_s64(0)));
  starts[axis] = position(b, trip, extents[axis], how.reverse);
  extents[axis] = 1;
  Instr* slice = b.dynamic_slice(all, starts, extents);
  extents.erase(extents.begin() + how.axis);
  return b.reshape(slice, extents);
}

// False: the condition is not known to stay true.
bool Importer::While::run_body() {
  hlo::Builder b(importer.into_);
  Instr* trip = b.get_tuple_element(region->parameter, 0);
  const std::vector<proto::ValueInfo>& inputs = form.body->inputs;
  size_t next = 0;
  const auto define = [&](Value* value) {
    region->scope.values.insert_or_assign(inputs[next++].name, value);
  };
  const auto of_instr = [&](Instr* instr) {
    return importer.instr_value(instr, inputs[next].name);
  };
  if (form.counts) {
    Value* number = of_instr(trip);
    constexpr int64_t kMostTrips = 1 << 10;
    if (form.trip_count && *form.trip_count > 0 && *form.trip_count <= kMostTrips) {
      auto trips = std::make_shared<std::vector<Literal>>();
      for (int64_t i = 0; i < *form.trip_count; ++i) trips->push_back(scalar_s64(i));
      number->trips = trips;
    }
    define(number);
    define(dynamic_condition ? of_instr(b.get_tuple_element(region->parameter, 1))
                             : importer.known_value(true_literal(), inputs[next].name));
  }
  for (size_t i = 0; i < form.carried.size(); ++i)
    define(of_instr(
        b.get_tuple_element(region->parameter, carried_begin() + static_cast<int64_t>(i))));
  for (size_t i = 0; i < form.scanned.size(); ++i) define(of_instr(slice(b, trip, i)));
  check(b);
  importer.run_graph(*form.body, region->scope);
  for (size_t i = 0; i < form.body->outputs.size(); ++i)
    results.push_back(importer.output_value(*form.body, i, region->scope));
  if (!form.counts) return true;
  again = results[0];
  results.erase(results.begin());
  return dynamic_condition || known_bool(again) == true;
}

void Importer::While::check_results() {
  for (size_t i = 0; i < form.carried.size(); ++i) {
    const Shape& wanted = form.carried[i]->shape();
    if (!results[i]->is_tensor() || !(results[i]->shape() == wanted))
      fail("{}: carried value {} begins as {} and leaves a trip as {}", describe(node), i,
           to_string(wanted),
           results[i]->is_tensor() ? to_string(results[i]->shape()) : "a sequence");
  }
  check_condition(node, again, "the body's");
  // Add the collected outputs to the parameter.
  state.resize(static_cast<size_t>(captured_begin()));
  for (const Value* value : region->captured) state.push_back(value->shape());
  for (size_t i = 0; i < form.outputs.size(); ++i) {
    const Value* slice = results[form.carried.size() + i];
    if (!slice->is_tensor()) fail("{}: collects sequences", describe(node));
    Ints extents = slice->shape().extents();
    extents.insert(extents.begin() + axis_of(i), *form.trip_count);
    if (!sensible_extents(extents, importer.limits_.value_elems))
      fail("{}: collects a value of shape [{}]", describe(node), fmt::join(extents, ","));
    state.push_back(Shape::array(slice->shape().type(), extents));
  }
  for (const IndexDemand& demand : demands) state.push_back(demand.worst->shape());
  region->parameter->set_shape(Shape::make_tuple(state));
}

void Importer::While::close_body() {
  hlo::Builder b(region->computation);
  const auto element = [&](int64_t i) { return b.get_tuple_element(region->parameter, i); };
  Instr* trip = element(0);
  std::vector<Instr*> next{b.binary(Opcode::add, trip, b.constant(scalar_s64(1)))};
  if (dynamic_condition) next.push_back(b.reshape(materialise(b, *again), {}));
  for (size_t i = 0; i < form.carried.size(); ++i) next.push_back(materialise(b, *results[i]));
  while (static_cast<int64_t>(next.size()) < collected_begin())
    next.push_back(element(static_cast<int64_t>(next.size())));
  for (size_t i = 0; i < form.outputs.size(); ++i) {
    Instr* slice = materialise(b, *results[form.carried.size() + i]);
    Ints extents = slice->shape().extents();
    extents.insert(extents.begin() + axis_of(i), 1);
    slice = b.reshape(slice, extents);
    std::vector<Instr*> starts(extents.size(), b.constant(scalar_s64(0)));
    starts[static_cast<size_t>(axis_of(i))] =
        position(b, trip, *form.trip_count, form.outputs[i].reverse);
    next.push_back(b.dynamic_update_slice(element(collected_begin() + static_cast<int64_t>(i)),
                                          slice, starts));
  }
  for (const IndexDemand& demand : demands)
    next.push_back(
        b.binary(Opcode::maximum, element(static_cast<int64_t>(next.size())), demand.worst));
  region->computation->set_root(b.tuple(next));
  check(b);
}

hlo::Computation* Importer::While::condition() {
  hlo::Computation* condition = importer.result_.module->add_computation("condition");
  hlo::Builder b(condition);
  Instr* parameter = b.parameter(0, region->parameter->shape(), "state");
  Instr* more = nullptr;
  if (form.trip_count || form.trips != nullptr) {
    Instr* count =
        form.trip_count
            ? b.constant(scalar_s64(*form.trip_count))
            : b.convert(b.reshape(b.get_tuple_element(parameter, place_of(form.trips)), {}),
                        Type::s64);
    more = b.compare(hlo::Direction::lt, b.get_tuple_element(parameter, 0), count);
  }
  if (dynamic_condition) {
    Instr* wanted = b.get_tuple_element(parameter, 1);
    more = more == nullptr ? wanted : b.binary(Opcode::and_, more, wanted);
  }
  if (more == nullptr)
    fail("{}: it has no trip count and its condition is always true", describe(node));
  condition->set_root(more);
  check(b);
  return condition;
}

std::vector<Value*> Importer::While::call() {
  hlo::Computation* const test = condition();
  hlo::Builder b(importer.into_);
  const size_t first = importer.into_->instrs().size();
  std::vector<Instr*> init{b.constant(scalar_s64(0))};
  if (dynamic_condition)
    init.push_back(form.condition == nullptr ? b.constant(true_literal())
                                             : b.reshape(materialise(b, *form.condition), {}));
  for (Value* value : form.carried) init.push_back(materialise(b, *value));
  for (Value* value : region->captured) init.push_back(materialise(b, *value));
  for (auto at = static_cast<size_t>(collected_begin()); at < state.size(); ++at)
    init.push_back(b.full(state[at], 0));
  Instr* loop = b.while_loop(test, region->computation, b.tuple(init));
  std::vector<Value*> outputs;
  const auto output = [&](int64_t i) {
    outputs.push_back(importer.instr_value(b.get_tuple_element(loop, i), node.op_type));
  };
  for (int64_t i = carried_begin(); i < captured_begin(); ++i) output(i);
  for (int64_t i = collected_begin(); i < demands_begin(); ++i) output(i);
  importer.take_over(std::move(demands), loop, demands_begin());
  check(b);
  hlo::NodeNames names = importer.name_of(node);
  if (again != nullptr) names.add(again->nodes);
  importer.finish_instrs(first, node, names);
  return outputs;
}

// No trips: carried values are unchanged, nothing is collected.
std::vector<Value*> Importer::While::nothing_done() {
  std::vector<Value*> outputs = form.carried;
  hlo::Builder b(importer.into_);
  for (int64_t at = collected_begin(); at < demands_begin(); ++at)
    outputs.push_back(
        importer.instr_value(b.full(state[static_cast<size_t>(at)], 0), node.op_type));
  check(b);
  return outputs;
}

std::vector<Value*> Importer::emit_while(const Node& node, const LoopForm& form, Scope& scope,
                                         bool dynamic_condition, bool& needs_condition) {
  hlo::Computation* const outside = into_;
  While loop{*this, node, form, scope, dynamic_condition};
  loop.open();
  bool ran = false;
  {
    const InnerDemands inner(demands_);
    into_ = loop.region->computation;
    ran = loop.run_body();
    if (ran) loop.demands = close_demands();
    into_ = outside;
  }
  if (!ran) {
    needs_condition = true;
    return {};
  }
  loop.check_results();
  if (form.trip_count == 0) return loop.nothing_done();
  loop.close_body();
  return loop.call();
}

}  // namespace heddle::import
