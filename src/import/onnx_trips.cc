#include "import/onnx_trips.h"

#include <algorithm>

#include "import/onnx_importer.h"

namespace heddle::import {
namespace {

using proto::Attribute;
using proto::Node;
using Made = TripWalk::Made;

const Attribute* attribute(const Node& node, std::string_view name) {
  for (const Attribute& one : node.attributes)
    if (one.name == name) return &one;
  return nullptr;
}

bool is_count(const TripExtent& extent) { return extent.count != nullptr; }

int64_t counts_in(const TripExtents& extents) {
  return std::count_if(extents.begin(), extents.end(), is_count);
}

// The place of the count.
int64_t place_of_count(const TripExtents& extents) {
  return std::find_if(extents.begin(), extents.end(), is_count) - extents.begin();
}

// Of the numbers from one place to another.
int64_t elems_between(const TripExtents& extents, int64_t from, int64_t to) {
  int64_t elems = 1;
  for (int64_t i = from; i < to; ++i) {
    const TripExtent& extent = extents[static_cast<size_t>(i)];
    if (!is_count(extent)) elems *= extent.number;
  }
  return elems;
}

int64_t elems_of(const TripExtents& extents) {
  return elems_between(extents, 0, std::ssize(extents));
}

TripExtents numbers_of(const Ints& values) {
  TripExtents extents;
  for (const int64_t value : values) extents.push_back({value, nullptr});
  return extents;
}

Made rows(const Value* sequence, TripExtents extents) {
  TripValue value;
  value.kind = TripValue::Kind::rows;
  value.sequence = sequence;
  value.extents = std::move(extents);
  return {std::move(value), std::nullopt};
}

// Known where none is a count.
Made integers(bool is_scalar, TripExtents extents) {
  if (counts_in(extents) == 0) {
    const Ints at = is_scalar ? Ints{} : Ints{std::ssize(extents)};
    Literal literal(Shape::array(Type::s64, at));
    for (size_t i = 0; i < extents.size(); ++i)
      literal.set_s64(static_cast<int64_t>(i), extents[i].number);
    return {std::nullopt, std::move(literal)};
  }
  TripValue value;
  value.kind = TripValue::Kind::integers;
  value.is_scalar = is_scalar;
  value.extents = std::move(extents);
  return {std::move(value), std::nullopt};
}

}  // namespace

const TripValue* TripWalk::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

bool TripWalk::reads(const Node& node) const {
  const std::vector<std::string_view> names = names_read(std::span(&node, 1));
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view name) { return values_.contains(name); });
}

const Literal* TripWalk::literal(std::string_view name) const {
  if (name.empty() || values_.contains(name)) return nullptr;
  const Value* value = find_(name);
  return value != nullptr && value->is_tensor() && value->literal ? &*value->literal : nullptr;
}

std::optional<Ints> TripWalk::known(std::string_view name) const {
  const Literal* value = literal(name);
  if (value == nullptr || value->shape().rank() > 1 ||
      !(tensor::is_integer(value->type()) || value->type() == Type::pred))
    return std::nullopt;
  Ints result;
  for (int64_t i = 0; i < value->elems(); ++i) result.push_back(value->get_s64(i));
  return result;
}

std::optional<TripWalk::Numbers> TripWalk::numbers(std::string_view name) const {
  const TripValue* value = find(name);
  if (value == nullptr) {
    const std::optional<Ints> values = known(name);
    if (!values) return std::nullopt;
    return Numbers{literal(name)->shape().rank() == 0, numbers_of(*values)};
  }
  if (value->kind == TripValue::Kind::integers) return Numbers{value->is_scalar, value->extents};
  const bool is_one = value->kind == TripValue::Kind::rows && value->extents.size() <= 1 &&
                      counts_in(value->extents) == 0 && elems_of(value->extents) == 1 &&
                      tensor::is_integer(value->sequence->elements[0]->shape().type());
  if (!is_one) return std::nullopt;
  return Numbers{value->extents.empty(), {{1, value->sequence}}};
}

std::optional<Made> TripWalk::at(const Node& node) const {
  const TripValue* trip = find(node.inputs[1]);
  const Value* sequence = find_(node.inputs[0]);
  if (trip == nullptr || trip->kind != TripValue::Kind::trip || sequence == nullptr ||
      !sequence->pieces || std::ssize(sequence->elements) != trips_)
    return std::nullopt;
  return rows(sequence, numbers_of(sequence->elements[0]->shape().extents()));
}

std::optional<Made> TripWalk::insert(const Node& node) const {
  const TripValue *to = find(node.inputs[0]), *what = find(node.inputs[1]);
  const bool at_end = node.inputs.size() == 2 || node.inputs[2].empty();
  if (to == nullptr || to->kind != TripValue::Kind::carried || to->is_appended_to || !at_end ||
      what == nullptr || what->kind != TripValue::Kind::rows)
    return std::nullopt;
  TripValue longer = *what;
  longer.kind = TripValue::Kind::carried;
  longer.carried = to->carried;
  longer.is_appended_to = true;
  return Made{std::move(longer), std::nullopt};
}

std::optional<Made> TripWalk::unsqueeze(const Node& node) const {
  const TripValue& x = *find(node.inputs[0]);
  const Attribute* given = attribute(node, "axes");
  std::optional<Ints> axes;
  if (node.inputs.size() > 1) axes = known(node.inputs[1]);
  if (node.inputs.size() == 1 && given != nullptr) axes = given->ints;
  if (!axes) return std::nullopt;
  if (x.kind == TripValue::Kind::integers) {  // to a list of one
    if (!x.is_scalar || axes->size() != 1) return std::nullopt;
    return integers(false, x.extents);
  }
  if (x.kind != TripValue::Kind::rows) return std::nullopt;
  TripExtents extents = x.extents;
  const int64_t rank = std::ssize(extents) + std::ssize(*axes);
  for (int64_t& axis : *axes) axis = wrap_axis(node, axis, rank);
  std::sort(axes->begin(), axes->end());
  for (const int64_t axis : *axes) {
    if (axis > std::ssize(extents)) return std::nullopt;
    extents.insert(extents.begin() + axis, TripExtent());
  }
  return rows(x.sequence, std::move(extents));
}

std::optional<Made> TripWalk::shape(const Node& node) const {
  if (!node.attributes.empty()) return std::nullopt;
  const TripValue& x = *find(node.inputs[0]);
  if (x.kind == TripValue::Kind::rows) return integers(false, x.extents);
  if (x.kind != TripValue::Kind::integers) return std::nullopt;
  return integers(false, x.is_scalar ? TripExtents() : numbers_of({std::ssize(x.extents)}));
}

std::optional<Made> TripWalk::concat(const Node& node) const {
  TripExtents all;
  for (const std::string_view name : node.inputs) {
    const std::optional<Numbers> part = numbers(name);
    if (!part || part->is_scalar) return std::nullopt;
    all.insert(all.end(), part->extents.begin(), part->extents.end());
  }
  return integers(false, std::move(all));
}

// A count is none of the negative numbers.
std::optional<Made> TripWalk::equal(const Node& node) const {
  const std::optional<Numbers> a = numbers(node.inputs[0]), b = numbers(node.inputs[1]);
  if (!a || !b || a->is_scalar != b->is_scalar || a->extents.size() != b->extents.size())
    return std::nullopt;
  const Ints at = a->is_scalar ? Ints{} : Ints{std::ssize(a->extents)};
  Literal same(Shape::array(Type::pred, at));
  for (size_t i = 0; i < a->extents.size(); ++i) {
    const TripExtent &x = a->extents[i], &y = b->extents[i];
    const bool both = is_count(x) && is_count(y);
    if (both ? x.count != y.count
             : (is_count(x) || is_count(y)) && (is_count(x) ? y : x).number >= 0)
      return std::nullopt;
    same.set_s64(static_cast<int64_t>(i), x == y ? 1 : 0);
  }
  return Made{std::nullopt, std::move(same)};
}

std::optional<Made> TripWalk::where(const Node& node) const {
  const std::optional<Ints> first = known(node.inputs[0]);
  const std::optional<Numbers> a = numbers(node.inputs[1]), b = numbers(node.inputs[2]);
  if (!first || !a || !b || a->is_scalar != b->is_scalar ||
      a->extents.size() != b->extents.size() || first->size() != a->extents.size() ||
      (literal(node.inputs[0])->shape().rank() == 0) != a->is_scalar)
    return std::nullopt;
  TripExtents chosen;
  for (size_t i = 0; i < first->size(); ++i)
    chosen.push_back((*first)[i] != 0 ? a->extents[i] : b->extents[i]);
  return integers(a->is_scalar, std::move(chosen));
}

// Numpy's rule; only the count may be more than was there.
std::optional<Made> TripWalk::expand(const Node& node) const {
  const TripValue* x = find(node.inputs[0]);
  const std::optional<Numbers> to = numbers(node.inputs[1]);
  if (x == nullptr || x->kind != TripValue::Kind::rows || !to || to->is_scalar) return std::nullopt;
  TripExtents extents = x->extents;
  if (to->extents.size() > extents.size())
    extents.insert(extents.begin(), to->extents.size() - extents.size(), TripExtent());
  const size_t before = extents.size() - to->extents.size();
  for (size_t i = 0; i < to->extents.size(); ++i) {
    const TripExtent& wanted = to->extents[i];
    TripExtent& extent = extents[before + i];
    if (wanted == extent || wanted == TripExtent()) continue;
    if (!is_count(wanted) || !(extent == TripExtent())) return std::nullopt;
    extent = wanted;
  }
  if (counts_in(extents) > 1) return std::nullopt;
  return rows(x->sequence, std::move(extents));
}

// The count stays behind as many elements as before.
std::optional<Made> TripWalk::reshape(const Node& node) const {
  const TripValue* x = find(node.inputs[0]);
  const std::optional<Numbers> to = numbers(node.inputs[1]);
  const Attribute* zero = attribute(node, "allowzero");
  if (x == nullptr || !to || to->is_scalar) return std::nullopt;
  if (x->kind == TripValue::Kind::integers) {
    const bool is_list = to->extents.size() == 1 && x->extents.size() == 1 &&
                         !is_count(to->extents[0]) &&
                         (to->extents[0].number == -1 || to->extents[0].number == 1);
    return is_list ? std::optional(integers(false, x->extents)) : std::nullopt;
  }
  if (x->kind != TripValue::Kind::rows) return std::nullopt;
  TripExtents extents = to->extents;
  int64_t open = -1;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == TripExtent{0, nullptr}) {
      if (i >= x->extents.size() || (zero != nullptr && zero->i != 0)) return std::nullopt;
      extents[i] = x->extents[i];
    } else if (extents[i] == TripExtent{-1, nullptr}) {
      if (open >= 0) return std::nullopt;
      open = static_cast<int64_t>(i);
      extents[i].number = 1;
    } else if (extents[i].number < 0) {
      return std::nullopt;
    }
  }
  const int64_t elems = elems_of(x->extents), counts = counts_in(x->extents);
  const int64_t given = elems_of(extents);
  if (elems == 0 || given == 0 || elems % given != 0) return std::nullopt;
  if (open >= 0) {
    TripExtent& rest = extents[static_cast<size_t>(open)];
    rest.number = elems / given;
    if (counts_in(extents) < counts) {
      if (rest.number != 1) return std::nullopt;
      rest = x->extents[static_cast<size_t>(place_of_count(x->extents))];
    }
  }
  if (elems_of(extents) != elems || counts_in(extents) != counts) return std::nullopt;
  if (counts > 0) {
    const int64_t from = place_of_count(x->extents), now = place_of_count(extents);
    if (extents[static_cast<size_t>(now)] != x->extents[static_cast<size_t>(from)] ||
        elems_between(extents, 0, now) != elems_between(x->extents, 0, from))
      return std::nullopt;
  }
  return rows(x->sequence, std::move(extents));
}

std::optional<Made> TripWalk::same(const Node& node) const {
  const TripValue& x = *find(node.inputs[0]);
  if (node.op_type == "Identity") return Made{x, std::nullopt};
  const Attribute* to = attribute(node, "to");  // Cast: counts are integers of any type
  const std::optional<Numbers> list = numbers(node.inputs[0]);
  const bool is_wide = to != nullptr && element_type(to->i, describe(node)) == Type::s64;
  if (!list || !is_wide) return std::nullopt;
  return integers(list->is_scalar, list->extents);
}

std::optional<Made> TripWalk::walk(const Node& node) const {
  struct Row {
    std::string_view name;
    size_t inputs;
    std::optional<Made> (TripWalk::*walk)(const Node&) const;
  };
  constexpr Row kRows[] = {
      {"Cast", 1, &TripWalk::same},     {"Concat", 1, &TripWalk::concat},
      {"Equal", 2, &TripWalk::equal},   {"Expand", 2, &TripWalk::expand},
      {"Identity", 1, &TripWalk::same}, {"Reshape", 2, &TripWalk::reshape},
      {"SequenceAt", 2, &TripWalk::at}, {"SequenceInsert", 2, &TripWalk::insert},
      {"Shape", 1, &TripWalk::shape},   {"Unsqueeze", 1, &TripWalk::unsqueeze},
      {"Where", 3, &TripWalk::where},
  };
  for (const Row& row : kRows) {
    if (row.name != node.op_type) continue;
    const bool first = row.walk == &TripWalk::unsqueeze || row.walk == &TripWalk::shape ||
                       row.walk == &TripWalk::same;  // they look at nothing else
    if (node.inputs.size() < row.inputs || node.outputs.size() != 1 ||
        (first && find(node.inputs[0]) == nullptr))
      return std::nullopt;
    return (this->*row.walk)(node);
  }
  return std::nullopt;
}

}  // namespace heddle::import
