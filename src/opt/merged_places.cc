#include "opt/merged_places.h"

#include <unordered_map>

#include "hlo/first_rows.h"
#include "hlo/symbol.h"
#include "opt/match.h"

namespace heddle::opt {
namespace {

Instr* all(hlo::Builder& b, Instr* scalar, const Instr* as) {
  return b.broadcast(scalar, as->shape().extents(), {});
}

Instr* at_least_one(hlo::Builder& b, Instr* n) {
  return b.binary(Opcode::maximum, n, b.scalar(Type::s32, 1));
}

// What a scalar is repeated by; null: it is something else.
Instr* repeated_scalar(const Instr* x) {
  const bool repeats = x->is(Opcode::broadcast) && x->operand(0)->shape().is_scalar();
  return repeats ? x->operand(0) : nullptr;
}

// Lines that are computed from 0, 1, … along them, as they are at other numbers.
class LineAt {
 public:
  LineAt(hlo::Builder* b, Instr* numbers) : b_(*b), numbers_(numbers) {}

  // Null: it is something else.
  Instr* of(Instr* line) {
    const auto [known, added] = made_.emplace(line, nullptr);
    if (!added) return known->second;
    Instr* made = make(line);
    return made_[line] = made;
  }

 private:
  Instr* make(Instr* line) {
    if (line->shape().rank() != 1) return nullptr;
    const Type type = line->shape().type();
    if (line->is(Opcode::iota)) return b_.convert(numbers_, type);
    if (Instr* scalar = repeated_scalar(line)) return all(b_, scalar, numbers_);
    if (!is_elementwise(line)) return nullptr;
    std::vector<Instr*> operands;
    for (Instr* operand : line->operands()) {
      operands.push_back(of(operand));
      if (operands.back() == nullptr) return nullptr;
    }
    const Shape shape = Shape::array(type, numbers_->shape().extents());
    return b_.make(line->opcode(), operands, line->attrs(), {}, &shape);
  }

  hlo::Builder& b_;
  Instr* numbers_;
  std::unordered_map<const Instr*, Instr*> made_;
};

// What differs along one of the merged dimensions only, such as positions in a grid: it is looked
// up by that one, or computed. Null: x is something else.
Instr* pack_repeated(hlo::Builder& b, Instr* x, int64_t at, const MergedPlaces& places) {
  const auto merged = static_cast<int64_t>(places.digits.size());
  if (!x->is(Opcode::broadcast)) return nullptr;
  Ints dimensions = x->dimensions(), extents = x->shape().extents();
  int64_t own = -1;
  for (size_t k = 0; k < dimensions.size(); ++k) {
    int64_t& d = dimensions[k];
    if (d < at) continue;
    if (d >= at + merged) {
      d -= merged - 1;
      continue;
    }
    if (own >= 0) return nullptr;
    own = static_cast<int64_t>(k);
  }
  if (own < 0) return nullptr;
  int64_t& d = dimensions[static_cast<size_t>(own)];
  Instr* digit = places.digits[static_cast<size_t>(d - at)];
  d = at;
  extents.erase(extents.begin() + at, extents.begin() + at + merged);
  extents.insert(extents.begin() + at, digit->shape().dim(0));
  Instr* line = LineAt(&b, digit).of(x->operand(0));
  if (!line) line = b.take(x->operand(0), digit, own);
  return b.broadcast(line, extents, dimensions);
}

}  // namespace

MergedPlaces make_places(hlo::Builder& b, const Ints& bounds, const std::vector<Instr*>& extents) {
  MergedPlaces made;
  made.extents = extents;
  made.bounds = bounds;
  made.digits.resize(bounds.size());
  int64_t elems = 1;
  Instr* count = nullptr;
  for (size_t d = 0; d < bounds.size(); ++d) {
    elems *= bounds[d];
    count = count ? b.binary(Opcode::multiply, count, extents[d]) : extents[d];
  }
  made.rows = hlo::first_rows(b, b.iota(Shape::array(Type::s32, {elems}), 0), count);
  Instr* rest = made.rows;
  for (size_t d = bounds.size(); d-- > 1;) {
    Instr* outer = b.binary(Opcode::divide, rest, all(b, at_least_one(b, extents[d]), rest));
    Instr* inside = b.binary(Opcode::multiply, outer, all(b, extents[d], rest));
    made.digits[d] = b.binary(Opcode::subtract, rest, inside);
    rest = outer;
  }
  made.digits[0] = rest;
  std::vector<Instr*> columns;
  for (Instr* digit : made.digits) columns.push_back(b.reshape(digit, {elems, 1}));
  made.of_packed = b.concatenate(columns, 1);
  return made;
}

Instr* places_in_packed(hlo::Builder& b, const Ints& bounds, const std::vector<Instr*>& extents,
                        const std::vector<Instr*>& along) {
  Instr* sum = b.broadcast(along[0], bounds, {0});
  for (size_t d = 1; d < bounds.size(); ++d)
    sum = b.binary(Opcode::add, b.binary(Opcode::multiply, sum, all(b, extents[d], sum)),
                   b.broadcast(along[d], bounds, {static_cast<int64_t>(d)}));
  return sum;
}

Instr* pack_dimensions(hlo::Builder& b, Instr* x, int64_t at, const MergedPlaces& places) {
  const auto merged = static_cast<int64_t>(places.digits.size());
  if (Instr* made = pack_repeated(b, x, at, places)) return made;
  hlo::GatherAttrs attrs;
  attrs.slice_sizes = x->shape().extents();
  for (int64_t d = at; d < at + merged; ++d) {
    attrs.collapsed_slice_dims.push_back(d);
    attrs.slice_sizes[static_cast<size_t>(d)] = 1;
  }
  attrs.start_index_map = attrs.collapsed_slice_dims;
  for (int64_t d = 0; d < x->shape().rank() - merged + 1; ++d)
    if (d != at) attrs.offset_dims.push_back(d);
  attrs.index_vector_dim = 1;
  return b.gather(x, places.of_packed, std::move(attrs));
}

std::optional<MergedPlaces> read_places(const Instr* positions) {
  if (!positions->is(Opcode::concatenate) || positions->shape().rank() != 2 ||
      positions->dimensions()[0] != 1)
    return std::nullopt;
  MergedPlaces found;
  found.of_packed = const_cast<Instr*>(positions);
  for (const Instr* column : positions->operands()) {
    if (!column->is(Opcode::reshape) || column->shape().dim(1) != 1) return std::nullopt;
    found.digits.push_back(column->operand(0));
  }
  // The first one is rows / … / extent.
  Instr* rest = found.digits[0];
  std::vector<Instr*> quotients{rest};
  while (rest->is(Opcode::divide)) quotients.push_back(rest = rest->operand(0));
  if (quotients.size() != found.digits.size() || found.digits.size() < 2 ||
      !hlo::is_first_rows(*rest) || !rest->operand(0)->is(Opcode::iota))
    return std::nullopt;
  found.rows = rest;
  found.extents.assign(found.digits.size(), nullptr);
  for (size_t d = 1; d < found.digits.size(); ++d) {
    const Instr* digit = found.digits[d];
    if (!digit->is(Opcode::subtract) || digit->operand(0) != quotients[d] ||
        !digit->operand(1)->is(Opcode::multiply) ||
        digit->operand(1)->operand(0) != quotients[d - 1])
      return std::nullopt;
    found.extents[d] = repeated_scalar(digit->operand(1)->operand(1));
    const Instr* divisor = repeated_scalar(quotients[d - 1]->operand(1));
    if (!found.extents[d] || !divisor || !divisor->is(Opcode::maximum) ||
        divisor->operand(0) != found.extents[d])
      return std::nullopt;
  }
  Instr* count = rest->operand(1);
  for (size_t d = found.digits.size(); d-- > 1; count = count->operand(0))
    if (!count->is(Opcode::multiply) || count->operand(1) != found.extents[d]) return std::nullopt;
  found.extents[0] = count;
  return found;
}

std::optional<std::vector<Instr*>> read_in_packed(const Instr* positions) {
  std::vector<Instr*> extents;
  const int64_t rank = positions->shape().rank();
  const auto is_along = [](const Instr* x, int64_t d) {
    return x->is(Opcode::broadcast) && x->dimensions() == Ints{d} &&
           (x->operand(0)->is(Opcode::iota) || hlo::is_first_rows(*x->operand(0)));
  };
  for (int64_t d = rank; d-- > 1; positions = positions->operand(0)->operand(0)) {
    if (!positions->is(Opcode::add) || !is_along(positions->operand(1), d) ||
        !positions->operand(0)->is(Opcode::multiply))
      return std::nullopt;
    Instr* extent = repeated_scalar(positions->operand(0)->operand(1));
    if (!extent) return std::nullopt;
    extents.insert(extents.begin(), extent);
  }
  if (extents.empty() || !is_along(positions, 0)) return std::nullopt;
  return extents;
}

}  // namespace heddle::opt
