#include "opt/coordinate.h"

#include <algorithm>

#include "opt/match.h"

namespace heddle::opt {
namespace {

constexpr int kDeepest = 24;
// Larger numbers are not handled, so that nothing here overflows, even in 32 bits.
constexpr int64_t kMost = int64_t{1} << 30;

constexpr int kMostVisits = 200;

using Found = std::optional<Coordinate>;

struct Walk {
  int depth = 0;
  int* visits = nullptr;
};

Found coordinate(const Instr* x, Walk walk);

struct Range {
  int64_t low = 0, high = 0;
};

Range range_of(const Coordinate& c, const Instr* x) {
  const int64_t last = c.step == 0 ? 0 : x->shape().dim(c.dimension) - 1;
  const int64_t end = c.step * std::max<int64_t>(last, 0) + c.offset;
  return {std::min(c.offset, end), std::max(c.offset, end)};
}

Found in_range(Coordinate c, const Instr* x) {
  if (std::abs(c.step) >= kMost || std::abs(c.offset) >= kMost) return std::nullopt;
  const Range range = range_of(c, x);
  if (range.low <= -kMost || range.high >= kMost) return std::nullopt;
  const Type type = x->shape().type();
  if (range.low < 0 && !tensor::is_signed_integer(type)) return std::nullopt;
  if (const int64_t bits = tensor::type_bits(type);
      bits < 32 && std::max(-range.low, range.high + 1) > int64_t{1} << (bits - 1))
    return std::nullopt;
  if (c.step == 0) c.dimension = -1;
  return c;
}

Found moved(const Instr* x, Walk walk) {
  Found c = coordinate(x->operand(0), walk);
  if (!c || c->step == 0) return c;
  const hlo::IndexMap map = hlo::index_map(*x, 0);
  const hlo::DimLink* link = map.of_operand(c->dimension);
  if (!link || link->kind != hlo::DimKind::same) return std::nullopt;
  c->dimension = link->to;
  return c;
}

Found sum(const Instr* x, int64_t sign, Walk walk) {
  Found a = coordinate(x->operand(0), walk), b = coordinate(x->operand(1), walk);
  if (!a || !b) return std::nullopt;
  if (a->step != 0 && b->step != 0 && a->dimension != b->dimension) return std::nullopt;
  return in_range({std::max(a->dimension, b->dimension), a->step + sign * b->step,
                   a->offset + sign * b->offset},
                  x);
}

Found product(const Instr* x, Walk walk) {
  Found a = coordinate(x->operand(0), walk), b = coordinate(x->operand(1), walk);
  if (!a || !b) return std::nullopt;
  if (a->step == 0) std::swap(a, b);
  if (b->step != 0) return std::nullopt;
  return in_range({a->dimension, a->step * b->offset, a->offset * b->offset}, x);
}

// Whether a comparison is true, or false, for all elements.
std::optional<bool> decided(const Instr* x, Walk walk) {
  if (!x->is(Opcode::compare) || !is_integer(x->operand(0))) return std::nullopt;
  const Found a = coordinate(x->operand(0), walk), b = coordinate(x->operand(1), walk);
  if (!a || !b) return std::nullopt;
  const Range left = range_of(*a, x->operand(0)), right = range_of(*b, x->operand(1));
  const bool less = left.high < right.low, not_less = left.low >= right.high;
  const bool more = left.low > right.high, not_more = left.high <= right.low;
  const auto is = [](bool yes, bool no) -> std::optional<bool> {
    if (yes || no) return yes;
    return std::nullopt;
  };
  switch (x->attrs_as<hlo::CompareAttrs>().direction) {
    case hlo::Direction::lt:
      return is(less, not_less);
    case hlo::Direction::ge:
      return is(not_less, less);
    case hlo::Direction::gt:
      return is(more, not_more);
    case hlo::Direction::le:
      return is(not_more, more);
    default:
      return std::nullopt;
  }
}

Found coordinate(const Instr* x, Walk walk) {
  if (++walk.depth > kDeepest || ++*walk.visits > kMostVisits || !are_static_arrays(x) ||
      !is_integer(x))
    return std::nullopt;
  if (const Literal* number = splat_of(x)) {
    const int64_t value = number->get_s64(0);
    if (value <= -kMost || value >= kMost) return std::nullopt;
    return in_range({-1, 0, value}, x);
  }
  switch (x->opcode()) {
    case Opcode::iota:
      return in_range({x->attrs_as<hlo::DimensionAttrs>().dimension, 1, 0}, x);
    case Opcode::convert:
      if (tensor::type_bits(x->shape().type()) < 32 || !is_integer(x->operand(0)))
        return std::nullopt;
      if (const Found c = coordinate(x->operand(0), walk)) return in_range(*c, x);
      return std::nullopt;
    case Opcode::broadcast:
    case Opcode::transpose:
    case Opcode::reshape:
      return moved(x, walk);
    case Opcode::add:
      return sum(x, 1, walk);
    case Opcode::subtract:
      return sum(x, -1, walk);
    case Opcode::multiply:
      return product(x, walk);
    case Opcode::select:
      if (const auto yes = decided(x->operand(0), walk))
        return coordinate(x->operand(*yes ? 1 : 2), walk);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Coordinate> coordinate_in(const Instr* x) {
  int visits = 0;
  return coordinate(x, {0, &visits});
}

}  // namespace heddle::opt
