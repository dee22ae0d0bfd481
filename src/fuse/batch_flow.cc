#include "fuse/batch_flow.h"

#include <algorithm>

#include "hlo/loop_trips.h"

namespace heddle::fuse {

namespace {

using hlo::Ints;
using tensor::Shape;

constexpr int64_t kGone = -1, kBlocked = -2;  // summed up; rows may not lie there

bool has(const Ints& list, int64_t d) {
  return std::find(list.begin(), list.end(), d) != list.end();
}

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

// The same rows in another shape of as many elements; none: they are not the major part there.
std::optional<RowPlace> reshaped(const Shape& from, const Shape& to, RowPlace place) {
  const int64_t rows = from.dim(place.dim) / place.unit;
  const int64_t before = product(from, 0, place.dim);
  const int64_t inner = place.unit * product(from, place.dim + 1, from.rank());
  for (int64_t d = 0; d < to.rank(); ++d) {
    if (product(to, 0, d) != before || to.dim(d) == 1) continue;
    const int64_t behind = product(to, d + 1, to.rank());
    if (inner % behind != 0 || to.dim(d) != rows * (inner / behind)) return {};
    return RowPlace{d, inner / behind};
  }
  return {};
}

// By dimension of operand k: the dimension of the result, or kGone, or kBlocked. None: an operator
// that rows are not followed through.
std::optional<Ints> to_result(const Instr* instr, size_t k) {
  const Shape& shape = instr->operand(k)->shape();
  Ints result(static_cast<size_t>(shape.rank()));
  for (size_t d = 0; d < result.size(); ++d) result[d] = static_cast<int64_t>(d);
  auto block = [&](auto&& where) {
    for (size_t d = 0; d < result.size(); ++d)
      if (where(static_cast<int64_t>(d))) result[d] = kBlocked;
    return result;
  };
  if (has_trait(instr->opcode(), hlo::elementwise) || instr->is(Opcode::copy)) return result;
  switch (instr->opcode()) {
    case Opcode::broadcast:
      return instr->dimensions();
    case Opcode::transpose:
      for (size_t d = 0; d < result.size(); ++d)
        result[static_cast<size_t>(instr->dimensions()[d])] = static_cast<int64_t>(d);
      return result;
    case Opcode::reverse:
      return block([&](int64_t d) { return has(instr->dimensions(), d); });
    case Opcode::concatenate:
      return block([&](int64_t d) { return d == instr->dimensions()[0]; });
    case Opcode::slice:
      return block([&](int64_t d) { return instr->shape().dim(d) != shape.dim(d); });
    case Opcode::pad:
      return block([&](int64_t d) {
        const auto& attrs = instr->attrs_as<hlo::PadAttrs>();
        const auto at = static_cast<size_t>(d);
        return attrs.low[at] != 0 || attrs.high[at] != 0 || attrs.interior[at] != 0;
      });
    case Opcode::dynamic_slice:
      return block([&](int64_t d) { return instr->shape().dim(d) != shape.dim(d); });
    case Opcode::dynamic_update_slice:
      return block(
          [&](int64_t d) { return instr->operand(1)->shape().dim(d) != instr->shape().dim(d); });
    case Opcode::reduce: {
      if (!instr->shape().is_array()) return {};
      int64_t next = 0;
      for (size_t d = 0; d < result.size(); ++d)
        result[d] = has(instr->dimensions(), static_cast<int64_t>(d)) ? kGone : next++;
      return result;
    }
    case Opcode::dot: {
      const auto& attrs = instr->attrs_as<hlo::DotAttrs>();
      const Ints& batch = k == 0 ? attrs.lhs_batch_dims : attrs.rhs_batch_dims;
      const Ints& summed = k == 0 ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
      int64_t next = static_cast<int64_t>(batch.size());
      if (k == 1)
        next += instr->operand(0)->shape().rank() - next -
                static_cast<int64_t>(attrs.lhs_contracting_dims.size());
      for (size_t d = 0; d < result.size(); ++d) {
        const auto at = static_cast<int64_t>(d);
        if (has(batch, at))
          result[d] = std::find(batch.begin(), batch.end(), at) - batch.begin();
        else
          result[d] = has(summed, at) ? kGone : next++;
      }
      return result;
    }
    default:
      return {};
  }
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
  parent_.resize(leaves + instrs_.size());
  for (size_t i = 0; i < parent_.size(); ++i) parent_[i] = i;
  classes_.resize(parent_.size());
  auto join = [&](size_t a, size_t b) {
    auto top = [&](size_t at) {
      while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
      return at;
    };
    parent_[top(a)] = top(b);
  };
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

size_t BatchFlow::class_of(const Instr* value) const {
  size_t at = number_.at(value);
  while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
  return at;
}

std::optional<RowPlace> BatchFlow::place_of(const Instr* value) const {
  return value->shape().is_array() ? classes_[class_of(value)].place : std::nullopt;
}

bool BatchFlow::is_whole(const Instr* value) const {
  return value->shape().is_array() && classes_[class_of(value)].is_whole;
}

std::optional<RowPlace> BatchFlow::leaf_place(int64_t leaf) const {
  size_t at = static_cast<size_t>(leaf);
  while (parent_[at] != at) at = parent_[at];
  return classes_[at].place;
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

// Operand k has rows at `place`, and the result has none: a sum over all rows.
Decision BatchFlow::visit_gone(const Instr* instr, size_t k, RowPlace place) {
  if (!adds(instr)) return mixes(instr);
  sums_.insert(instr);
  if (!instr->is(Opcode::dot)) return Decision::yes();
  const auto& attrs = instr->attrs_as<hlo::DotAttrs>();
  const Ints& mine = k == 0 ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
  const Ints& others = k == 0 ? attrs.rhs_contracting_dims : attrs.lhs_contracting_dims;
  const auto at = std::find(mine.begin(), mine.end(), place.dim) - mine.begin();
  return set(instr->operand(1 - k), {others[static_cast<size_t>(at)], place.unit});
}

// What is known of one side of an operator tells of the other one.
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
    if (is_reshape(instr)) {
      const auto there = place ? reshaped(operand->shape(), instr->shape(), *place)
                               : reshaped(instr->shape(), operand->shape(), *result);
      if (!there) return mixes(instr);
      if (Decision made = set(place ? instr : operand, *there); !made) return made;
      continue;
    }
    const std::optional<Ints> dims = to_result(instr, k);
    if (!dims) return mixes(instr);
    if (place) {
      const int64_t to = (*dims)[static_cast<size_t>(place->dim)];
      if (to == kBlocked || (to == kGone && result)) return mixes(instr);
      const Decision made =
          to == kGone ? visit_gone(instr, k, *place) : set(instr, {to, place->unit});
      if (!made) return made;
    } else {
      const auto from = std::find(dims->begin(), dims->end(), result->dim);
      if (from == dims->end()) {
        // Has none of the dimension: a broadcast's operand, the other side of a product.
        if (has(*dims, kBlocked)) return mixes(instr);
        continue;
      }
      if (Decision made = set(operand, {from - dims->begin(), result->unit}); !made) return made;
    }
  }
  return Decision::yes();
}

// Sums over all rows go nowhere but into a leaf that they are added to.
Decision BatchFlow::find_sums() {
  const size_t leaves = loop_->shape().elements().size();
  std::unordered_set<size_t> of_leaves;
  for (size_t i = 0; i < leaves; ++i) {
    size_t at = i;
    while (parent_[at] != at) at = parent_[at];
    of_leaves.insert(at);
  }
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
  // Nothing else reads what is summed up.
  std::unordered_map<size_t, int> readers;
  for (const Instr* instr : instrs_) {
    if (is_structure(instr)) continue;
    for (const Instr* operand : instr->operands())
      if (operand->shape().is_array() && classes_[class_of(operand)].is_sum &&
          ++readers[class_of(operand)] > 1)
        return Decision::no("loop-rows", "{} reads what is still summed up", instr->name());
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
    const bool round = hlo::goes_round(loop_, i);
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
      return Decision::no("loop-rows", "leaf {} has its rows beside others", i);
  }
  // One array, one use.
  for (int64_t i = 0; i < leaves; ++i)
    if (uses_[static_cast<size_t>(i)] != LeafUse::whole &&
        is_whole(body.root()->operand(static_cast<size_t>(i))))
      return Decision::no("loop-rows", "leaf {} is read in two ways", i);
  for (const Instr* instr : instrs_)
    if (instr->is(Opcode::dynamic_update_slice) && is_whole(instr) && instr->parent() != &body)
      return Decision::no("loop-rows", "{} is inside of a kernel", instr->name());
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
