#include "fuse/batch_flow.h"

#include <algorithm>

#include "hlo/loop_trips.h"

namespace heddle::fuse {

namespace {

using hlo::DimKind;
using hlo::DimLink;
using tensor::Shape;

bool is_reshape(const Instr* instr) {
  return instr->is(Opcode::reshape) ||
         (instr->is(Opcode::bitcast) && instr->shape().type() == instr->operand(0)->shape().type());
}

bool is_structure(const Instr* instr) {
  return instr->is(Opcode::fusion) || instr->is(Opcode::tuple) || instr->is(Opcode::parameter) ||
         instr->is(Opcode::get_tuple_element);
}

int64_t product(const Shape& shape, int64_t from, int64_t to) {
  int64_t result = 1;
  for (int64_t d = from; d < to; ++d) result *= shape.dim(d);
  return result;
}

// One side of a link: dimensions [begin, end) of a shape.
struct Side {
  const Shape& shape;
  int64_t begin, end;
};

// The rows on the other side of dimensions that are split or merged; none: they are not its major
// part.
std::optional<RowPlace> passed(RowPlace place, const Side& from, const Side& to) {
  if (place.dim != from.begin) return {};
  const int64_t inner = place.unit * product(from.shape, from.begin + 1, from.end);
  const int64_t behind = product(to.shape, to.begin + 1, to.end);
  if (inner % behind != 0) return {};
  return RowPlace{to.begin, inner / behind};
}

// Whether the operator for fewer rows differs only in its shapes, or in what StripCutter adapts.
bool is_followed(const Instr* instr) {
  return !instr->is(Opcode::gather) &&
         hlo::opcode_info(instr->opcode()).mapping != hlo::Mapping::window;
}

Decision mixes(const Instr* instr) {
  return Decision::no("loop-rows", "{} ({}) mixes rows", instr->name(),
                      hlo::opcode_text(instr->opcode()));
}

bool adds(const Instr* instr) {
  if (instr->is(Opcode::dot)) return true;
  return instr->is(Opcode::reduce) && instr->called()[0]->root()->is(Opcode::add);
}

}  // namespace

BatchFlow::BatchFlow(const Instr* loop) : loop_(loop), state_(loop->called()[1]->parameters()[0]) {
  collect();
}

void BatchFlow::collect() {
  const Computation& body = *loop_->called()[1];
  const size_t leaves = loop_->shape().elements().size();
  for (Instr* instr : body.instrs()) {
    instrs_.push_back(instr);
    if (!instr->is(Opcode::fusion)) continue;
    for (Instr* inner : instr->called()[0]->instrs()) instrs_.push_back(inner);
  }
  for (const Instr* instr : instrs_) number_.emplace(instr, leaves + number_.size());
  sets_ = Regions(leaves + instrs_.size());
  classes_.resize(leaves + instrs_.size());
  auto join = [&](size_t a, size_t b) { sets_.unite(static_cast<int>(a), static_cast<int>(b)); };
  for (const Instr* instr : instrs_) {
    if (instr->is(Opcode::get_tuple_element)) {
      const Instr* from = instr->operand(0);
      const auto index = static_cast<size_t>(instr->tuple_index());
      if (from == state_)
        join(number_.at(instr), index);
      else if (from->is(Opcode::fusion))
        join(number_.at(instr), number_.at(from->called()[0]->root()->operand(index)));
    } else if (instr->is(Opcode::fusion)) {
      const Computation& inner = *instr->called()[0];
      for (size_t k = 0; k < instr->operands().size(); ++k)
        join(number_.at(inner.parameters()[k]), number_.at(instr->operand(k)));
      if (!instr->shape().is_tuple()) join(number_.at(instr), number_.at(inner.root()));
    } else if (instr->is(Opcode::dynamic_update_slice)) {
      join(number_.at(instr), number_.at(instr->operand(0)));
    }
  }
  for (size_t i = 0; i < leaves; ++i) join(i, number_.at(body.root()->operand(i)));
}

size_t BatchFlow::class_of(const Instr* value) const { return class_of(number_.at(value)); }

size_t BatchFlow::class_of(size_t number) const {
  return static_cast<size_t>(sets_.of(static_cast<int>(number)));
}

std::optional<RowPlace> BatchFlow::place_of(const Instr* value) const {
  return value->shape().is_array() ? classes_[class_of(value)].place : std::nullopt;
}

bool BatchFlow::is_whole(const Instr* value) const {
  return value->shape().is_array() && classes_[class_of(value)].is_whole;
}

std::optional<RowPlace> BatchFlow::leaf_place(int64_t leaf) const {
  return classes_[class_of(static_cast<size_t>(leaf))].place;
}

Decision BatchFlow::set(const Instr* value, RowPlace place) {
  const Shape& shape = value->shape();
  if (!shape.is_array() || place.dim >= shape.rank() || shape.dim(place.dim) != rows_ * place.unit)
    return mixes(value);
  std::optional<RowPlace>& known = classes_[class_of(value)].place;
  if (known && !(*known == place))
    return Decision::no("loop-rows", "{} has its rows in two places", value->name());
  changed_ |= !known;
  known = place;
  return Decision::yes();
}

// The operator sums over the rows at `place` of an operand.
Decision BatchFlow::visit_sum(const Instr* instr, const DimLink& link, RowPlace place) {
  if (!adds(instr)) return mixes(instr);
  sums_.insert(instr);
  if (link.other < 0) return Decision::yes();
  return set(instr->operand(static_cast<size_t>(link.other)), {link.other_dim, place.unit});
}

// Propagates the place of rows between operands and result of an operator.
Decision BatchFlow::visit(const Instr* instr) {
  if (is_structure(instr)) return Decision::yes();
  const std::optional<RowPlace> result = place_of(instr);
  if (result && instr->operands().empty()) {
    const bool across =
        instr->is(Opcode::iota) && instr->attrs_as<hlo::DimensionAttrs>().dimension != result->dim;
    return across ? Decision::yes() : mixes(instr);
  }
  for (size_t k = 0; k < instr->operands().size(); ++k) {
    const Instr* operand = instr->operand(k);
    const std::optional<RowPlace> place = place_of(operand);
    if ((!result && !place) || operand->shape().is_scalar()) continue;
    const hlo::IndexMap map = hlo::index_map(*instr, k);
    if (map.is_opaque || !is_followed(instr)) return mixes(instr);
    const DimLink* link = place ? map.of_operand(place->dim) : map.of_result(result->dim);
    if (!link && !place) {
      // The operand lacks the dimension: a broadcast's operand, the other side of a product. A part
      // at another position along it is refused.
      const bool repeats = std::all_of(map.links.begin(), map.links.end(), [](const DimLink& each) {
        return each.kind == DimKind::same || each.kind == DimKind::reduced;
      });
      if (!repeats) return mixes(instr);
      continue;
    }
    if (link && link->kind == DimKind::reduced && !result) {
      if (Decision made = visit_sum(instr, *link, *place); !made) return made;
      continue;
    }
    if (!link || (link->kind != DimKind::same && link->kind != DimKind::regrouped))
      return mixes(instr);
    const Side below{operand->shape(), link->from, link->from_end};
    const Side above{instr->shape(), link->to, link->to_end};
    const auto there = place ? passed(*place, below, above) : passed(*result, above, below);
    if (!there) return mixes(instr);
    if (Decision made = set(place ? instr : operand, *there); !made) return made;
  }
  return Decision::yes();
}

// Checks that sums over all rows are only added to a leaf.
Decision BatchFlow::find_sums() {
  const size_t leaves = loop_->shape().elements().size();
  std::unordered_set<size_t> of_leaves;
  for (size_t i = 0; i < leaves; ++i) of_leaves.insert(class_of(i));
  std::unordered_set<size_t> sums;
  for (const Instr* instr : sums_) sums.insert(class_of(instr));
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instr* instr : instrs_) {
      if (is_structure(instr) || !instr->shape().is_array() || sums_.count(instr)) continue;
      const auto reads = std::count_if(
          instr->operands().begin(), instr->operands().end(), [&](const Instr* operand) {
            return operand->shape().is_array() && sums.count(class_of(operand)) > 0;
          });
      if (reads == 0) continue;
      const size_t here = class_of(instr);
      const bool moves = is_reshape(instr) || instr->is(Opcode::transpose) ||
                         instr->is(Opcode::copy) || (instr->is(Opcode::add) && reads == 2);
      if (moves) {
        changed |= sums.insert(here).second;
        continue;
      }
      const bool grows =
          instr->is(Opcode::add) && of_leaves.count(here) > 0 &&
          (class_of(instr->operand(0)) == here || class_of(instr->operand(1)) == here);
      if (!grows || classes_[here].place)
        return Decision::no("loop-rows", "{} reads a sum over all rows", instr->name());
      classes_[here].is_sum = true;
    }
  }
  for (size_t sum : sums)
    if (of_leaves.count(sum)) return Decision::no("loop-rows", "a leaf is a sum over all rows");
  // Nothing else may read a leaf that accumulates a sum.
  std::unordered_map<size_t, int> readers;
  for (const Instr* instr : instrs_) {
    if (is_structure(instr)) continue;
    for (const Instr* operand : instr->operands())
      if (operand->shape().is_array() && classes_[class_of(operand)].is_sum &&
          ++readers[class_of(operand)] > 1)
        return Decision::no("loop-rows", "{} reads a sum that is still being accumulated",
                            instr->name());
  }
  return Decision::yes();
}

Decision BatchFlow::find_uses() {
  const auto leaves = static_cast<int64_t>(loop_->shape().elements().size());
  std::unordered_set<size_t> boxes, others;
  for (const Instr* instr : instrs_) {
    if (is_structure(instr)) continue;
    for (size_t k = 0; k < instr->operands().size(); ++k) {
      if (!instr->operand(k)->shape().is_array()) continue;
      const bool is_box =
          k == 0 && (instr->is(Opcode::dynamic_slice) || instr->is(Opcode::dynamic_update_slice));
      const auto place = place_of(instr->operand(k));
      (is_box && place && place->unit == 1 ? boxes : others).insert(class_of(instr->operand(k)));
    }
  }
  const Computation& body = *loop_->called()[1];
  for (int64_t i = 0; i < leaves; ++i) {
    const Instr* next = body.root()->operand(static_cast<size_t>(i));
    const size_t at = class_of(next);
    const bool round = hlo::is_invariant_leaf(loop_, i);
    if (!classes_[at].place) {
      uses_.push_back(classes_[at].is_sum ? LeafUse::summed
                      : round             ? LeafUse::shared
                                          : LeafUse::counted);
      continue;
    }
    const bool in_memory =
        boxes.count(at) && !others.count(at) &&
        (round || (next->is(Opcode::dynamic_update_slice) && next->parent() == &body));
    classes_[at].is_whole |= in_memory;
    uses_.push_back(in_memory ? LeafUse::whole : round ? LeafUse::sliced : LeafUse::carried);
    if (!in_memory && classes_[at].place->unit != 1)
      return Decision::no("loop-rows", "leaf {} has its rows merged with another dimension", i);
  }
  // Every array must have a single use.
  for (int64_t i = 0; i < leaves; ++i)
    if (uses_[static_cast<size_t>(i)] != LeafUse::whole &&
        is_whole(body.root()->operand(static_cast<size_t>(i))))
      return Decision::no("loop-rows", "leaf {} is read in two ways", i);
  for (const Instr* instr : instrs_)
    if (instr->is(Opcode::dynamic_update_slice) && is_whole(instr) && instr->parent() != &body)
      return Decision::no("loop-rows", "{} is inside a kernel", instr->name());
  return Decision::yes();
}

Decision BatchFlow::follow(int64_t leaf, int64_t dim) {
  const Computation& body = *loop_->called()[1];
  const Instr* start = body.root()->operand(static_cast<size_t>(leaf));
  rows_ = start->shape().dim(dim);
  Decision decision = set(start, {dim, 1});
  for (changed_ = true; decision && changed_;) {
    changed_ = false;
    for (const Instr* instr : instrs_)
      if (decision) decision = visit(instr);
  }
  if (decision) decision = find_sums();
  if (decision) decision = find_uses();
  return decision;
}

}  // namespace heddle::fuse
