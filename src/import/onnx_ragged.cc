// Loops that do nothing but append to sequences that are joined behind them: a piece of an array a
// trip, as often as a piece of another array says. PyTorch's older exporter writes
// repeat_interleave with a tensor of repeats so. No trip is written out; what is appended is a
// gather of pieces, and nothing but the sum of the counts decides a shape.
#include "import/onnx_ragged.h"

#include <algorithm>

#include "import/onnx_emit.h"
#include "import/onnx_importer.h"
#include "import/onnx_trips.h"

namespace heddle::import {
namespace {

using proto::Graph;
using proto::Node;

// Where all that reads the sequence joins it along `dim`.
bool is_only_joined(std::string_view name, const Value::Ragged& how, std::span<const Node> behind,
                    const std::vector<std::string_view>& results) {
  if (std::find(results.begin(), results.end(), name) != results.end()) return false;
  for (size_t i = 0; i < behind.size(); ++i) {
    const Node& node = behind[i];
    const std::vector<std::string_view> names = names_read(behind.subspan(i, 1));
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (node.op_type != "ConcatFromSequence") return false;
    bool along = false;
    for (const proto::Attribute& attribute : node.attributes) {
      if (!attribute.ref_attr_name.empty()) return false;
      if (attribute.name == "new_axis" && attribute.i != 0) return false;
      const int64_t rank = std::ssize(how.extents);
      if (attribute.name == "axis") along = attribute.i == how.dim || attribute.i + rank == how.dim;
    }
    if (!along) return false;
  }
  return true;
}

// The sequence that appending such a value in each trip makes; nothing: it has another form.
std::optional<Value> ragged_sequence(const TripValue& appended) {
  Value sequence;
  sequence.kind = Value::Kind::sequence;
  sequence.ragged = Value::Ragged();
  const Value* counts = nullptr;
  int64_t before = 1, before_piece = 1;
  for (const TripExtent& extent : appended.extents) {
    sequence.ragged->extents.push_back(extent.count != nullptr ? 0 : extent.number);
    if (extent.count != nullptr) {
      if (counts != nullptr) return std::nullopt;
      counts = extent.count;
      sequence.ragged->dim = std::ssize(sequence.ragged->extents) - 1;
    }
    if (counts == nullptr) before *= extent.number;
  }
  if (counts == nullptr || counts->pieces->array->literal) return std::nullopt;
  const Value::Pieces& rows = *appended.sequence->pieces;
  for (int64_t d = 0; d < rows.axis; ++d) before_piece *= rows.array->shape().dim(d);
  if (before != before_piece) return std::nullopt;  // the pieces would have to be moved
  sequence.ragged->axis = rows.axis;
  sequence.elements = {rows.array, counts->pieces->array};
  return sequence;
}

}  // namespace

std::optional<std::vector<Value*>> Importer::run_ragged(const Node& node, const LoopForm& form,
                                                        Scope& scope) {
  const auto is_empty_sequence = [](const Value* value) {
    return value != nullptr && value->kind == Value::Kind::sequence && value->elements.empty();
  };
  const bool counts = limits_.decisions != nullptr &&
                      (options_.stages || options_.guessed_count > 0);  // else they must be known
  if (!counts || into_ != entry_ || !form.trip_count || *form.trip_count < 1 ||
      known_bool(form.condition) != true || !form.outputs.empty() || form.carried.empty() ||
      !std::all_of(form.carried.begin(), form.carried.end(), is_empty_sequence) ||
      form.body->inputs.size() != 2 + form.carried.size() || !form.body->initializers.empty())
    return std::nullopt;
  const std::span<const Node> behind = behind_;
  const size_t demanded = demands_.size();
  Scope inner;
  inner.outer = &scope;
  inner.opsets = scope.opsets;
  inner.attributes = scope.attributes;
  const std::vector<proto::ValueInfo>& names = form.body->inputs;
  inner.values.emplace(names[1].name, known_value(true_literal(), names[1].name));
  TripWalk trips(*form.trip_count, [&](std::string_view name) -> const Value* {
    bool known = false;
    return inner.find(name, known);
  });
  trips.define(names[0].name, {});
  for (size_t i = 0; i < form.carried.size(); ++i) {
    TripValue carried;
    carried.kind = TripValue::Kind::carried;
    carried.carried = i;
    trips.define(names[2 + i].name, std::move(carried));
  }
  try {
    for (const Node& inside : form.body->nodes) {
      if (!trips.reads(inside)) {
        run_node(inside, inner);
        continue;
      }
      std::optional<TripWalk::Made> made = trips.walk(inside);
      if (!made) {
        demands_.resize(demanded);
        return std::nullopt;
      }
      count_node();
      if (made->literal)
        inner.values.emplace(inside.outputs[0],
                             known_value(std::move(*made->literal), inside.outputs[0]));
      else
        trips.define(inside.outputs[0], std::move(*made->value));
    }
  } catch (const Failure&) {  // the trips tell
    demands_.resize(demanded);
    return std::nullopt;
  }
  const std::vector<proto::ValueInfo>& results = form.body->outputs;
  bool known = false;
  const Value* again = inner.find(results[0].name, known);
  bool fits = again != nullptr && known_bool(again) == true;
  std::vector<Value*> sequences;
  for (size_t i = 0; fits && i < form.carried.size(); ++i) {
    const TripValue* result = trips.find(results[1 + i].name);
    fits = result != nullptr && result->kind == TripValue::Kind::carried && result->carried == i &&
           result->is_appended_to;
    std::optional<Value> sequence = fits ? ragged_sequence(*result) : std::nullopt;
    fits = sequence && (i >= node.outputs.size() || node.outputs[i].empty() ||
                        is_only_joined(node.outputs[i], *sequence->ragged, behind, scope.results));
    if (fits) sequences.push_back(add_value(std::move(*sequence)));
  }
  if (fits) return sequences;
  demands_.resize(demanded);
  return std::nullopt;
}

// Position p of the result is of the piece at which the counts so far, its own among them, come to
// more than p.
Outputs join_ragged(Op& op) {
  const Value& sequence = *op.value(0);
  const Value::Ragged& how = *sequence.ragged;
  op.ignore({"axis", "new_axis"});
  Instr* rows = op.instr_of(*sequence.elements[0]);
  const int64_t trips = rows->shape().dim(how.axis);
  Instr* counts = op.b.convert(op.instr_of(*sequence.elements[1]), Type::s64);
  counts = binary(op, Opcode::maximum, reshape(op, counts, {trips}), 0);
  const Count all = op.count(op.b.reduce(Opcode::add, counts, {0}), Op::kAnyCount,
                             "length of what a loop appends");
  Ints extents = how.extents;
  extents[static_cast<size_t>(how.dim)] = all.extent;
  op.check_extents(extents);
  const Ints pairs = op.check_extents({all.extent, trips});
  constexpr double kMost = 1 << 30;  // positions are below it
  Instr* ends = running(op, Opcode::add, counts, 0, false);
  ends = op.b.convert(binary(op, Opcode::minimum, ends, kMost), Type::s32);
  Instr* place = op.first_rows(iota(op, Type::s32, {all.extent}, 0), all);
  Instr* behind = op.b.compare(Direction::ge, op.b.broadcast(place, pairs, {0}),
                               op.b.broadcast(ends, pairs, {1}));
  Instr* piece = op.b.reduce(Opcode::add, op.b.convert(behind, Type::s32), {1});
  return {reshape(op, op.b.take(rows, piece, how.axis), extents)};
}

}  // namespace heddle::import
