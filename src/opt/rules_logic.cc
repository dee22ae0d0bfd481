#include <algorithm>
#include <array>
#include <optional>

#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

using hlo::CompareAttrs;
using hlo::CompareType;
using hlo::Direction;

Direction direction_of(const Instr* compare) { return compare->attrs_as<CompareAttrs>().direction; }

Direction opposite(Direction direction) {
  switch (direction) {
    case Direction::eq:
      return Direction::ne;
    case Direction::ne:
      return Direction::eq;
    case Direction::ge:
      return Direction::lt;
    case Direction::gt:
      return Direction::le;
    case Direction::le:
      return Direction::gt;
    case Direction::lt:
      return Direction::ge;
  }
  HEDDLE_UNREACHABLE();
}

Direction mirrored(Direction direction) {
  switch (direction) {
    case Direction::ge:
      return Direction::le;
    case Direction::gt:
      return Direction::lt;
    case Direction::le:
      return Direction::ge;
    case Direction::lt:
      return Direction::gt;
    default:
      return direction;
  }
}

// Every pair is ordered: no NaN, or an order that includes it.
bool is_total(const Instr* compare) {
  const Type type = compare->operand(0)->shape().type();
  return tensor::is_integer(type) || type == Type::pred ||
         compare->attrs_as<CompareAttrs>().type == CompareType::total_order;
}

Instr* compare_as(Instr* compare, Direction direction, Instr* a, Instr* b_operand, Builder& b) {
  CompareAttrs attrs = compare->attrs_as<CompareAttrs>();
  attrs.direction = direction;
  return b.make(Opcode::compare, {a, b_operand}, attrs);
}

Instr* truth(const Instr* x, bool value, Builder& b) {
  return b.full(x->shape().without_layout(), value ? 1 : 0);
}

bool is_true(const Instr* x) { return is_pred(x) && is_all_ones(x); }
bool is_false(const Instr* x) { return is_pred(x) && is_zero_bits(x); }

}  // namespace

Instr* not_not(Instr* x, Builder&) {
  return x->operand(0)->is(Opcode::not_) ? x->operand(0)->operand(0) : nullptr;
}

Instr* not_compare(Instr* x, Builder& b) {
  Instr* compare = x->operand(0);
  if (!compare->is(Opcode::compare) || compare->users().size() > 1) return nullptr;
  const Direction direction = direction_of(compare);
  const bool equality = direction == Direction::eq || direction == Direction::ne;
  if (!equality && !is_total(compare)) return nullptr;
  return compare_as(compare, opposite(direction), compare->operand(0), compare->operand(1), b);
}

Instr* select_known(Instr* x, Builder&) {
  if (is_true(x->operand(0))) return x->operand(1);
  return is_false(x->operand(0)) ? x->operand(2) : nullptr;
}

Instr* select_same(Instr* x, Builder&) {
  return x->operand(1) == x->operand(2) ? x->operand(1) : nullptr;
}

Instr* select_not(Instr* x, Builder& b) {
  if (!x->operand(0)->is(Opcode::not_)) return nullptr;
  return b.select(x->operand(0)->operand(0), x->operand(2), x->operand(1));
}

Instr* select_nested(Instr* x, Builder& b) {
  Instr *p = x->operand(0), *on_true = x->operand(1), *on_false = x->operand(2);
  auto same = [&](const Instr* y) { return y->is(Opcode::select) && y->operand(0) == p; };
  if (!same(on_true) && !same(on_false)) return nullptr;
  return b.select(p, same(on_true) ? on_true->operand(1) : on_true,
                  same(on_false) ? on_false->operand(2) : on_false);
}

Instr* select_predicates(Instr* x, Builder& b) {
  Instr* p = x->operand(0);
  if (!is_pred(x) || !p->shape().compatible(x->shape())) return nullptr;
  if (is_true(x->operand(1)) && is_false(x->operand(2))) return p;
  if (is_false(x->operand(1)) && is_true(x->operand(2))) return b.unary(Opcode::not_, p);
  return nullptr;
}

Instr* compare_self(Instr* x, Builder& b) {
  if (x->operand(0) != x->operand(1) || !is_total(x) || !is_static_array(x)) return nullptr;
  const Direction direction = direction_of(x);
  return truth(
      x, direction == Direction::eq || direction == Direction::ge || direction == Direction::le, b);
}

Instr* compare_constant_right(Instr* x, Builder& b) {
  if (!is_constant_like(x->operand(0)) || is_constant_like(x->operand(1))) return nullptr;
  return compare_as(x, mirrored(direction_of(x)), x->operand(1), x->operand(0), b);
}

Instr* compare_pred(Instr* x, Builder& b) {
  Instr* p = x->operand(0);
  const Direction direction = direction_of(x);
  if (!is_pred(p) || (direction != Direction::eq && direction != Direction::ne)) return nullptr;
  const bool with_true = is_true(x->operand(1));
  if (!with_true && !is_false(x->operand(1))) return nullptr;
  return with_true == (direction == Direction::eq) ? p : b.unary(Opcode::not_, p);
}

// A pred converted to a number, 0 or 1, and compared again.
Instr* compare_converted_pred(Instr* x, Builder& b) {
  Instr* number = x->operand(0);
  const Direction direction = direction_of(x);
  if (direction != Direction::eq && direction != Direction::ne) return nullptr;
  if (x->attrs_as<CompareAttrs>().type == CompareType::total_order) return nullptr;
  if (!number->is(Opcode::convert) || !is_pred(number->operand(0))) return nullptr;
  const Type type = number->shape().type();
  if (!converts_exactly(Type::pred, type)) return nullptr;
  const Instr* with = x->operand(1);
  const bool with_one = is_splat(with, 1);
  if (!with_one && !is_splat(with, 0)) return nullptr;
  Instr* p = number->operand(0);
  return with_one == (direction == Direction::eq) ? p : b.unary(Opcode::not_, p);
}

Instr* compare_unsigned_zero(Instr* x, Builder& b) {
  if (!tensor::is_unsigned_integer(x->operand(0)->shape().type()) || !is_static_array(x))
    return nullptr;
  if (!is_zero_bits(x->operand(1))) return nullptr;
  if (direction_of(x) == Direction::ge) return truth(x, true, b);
  return direction_of(x) == Direction::lt ? truth(x, false, b) : nullptr;
}

namespace {

// The host's sort recognises the comparisons in comparators by their form.
bool is_in_comparator(const Instr* x) {
  if (x->parent() == x->parent()->module()->entry()) return false;
  const auto sorts_by = [&](const Instr* instr) {
    return instr->is(Opcode::sort) && instr->called()[0] == x->parent();
  };
  for (const auto& computation : x->parent()->module()->computations())
    if (std::any_of(computation->instrs().begin(), computation->instrs().end(), sorts_by))
      return true;
  return false;
}

std::optional<Type> integers_like(Type type) {
  switch (type) {
    case Type::f64:
      return Type::s64;
    case Type::f32:
      return Type::s32;
    case Type::f16:
    case Type::bf16:
      return Type::s16;
    default:
      return {};
  }
}

// Signed integers in x's total order: its bits, with those below the sign inverted if the sign is
// set.
Instr* ordered_bits(Instr* x, Type bits, Builder& b) {
  const Shape shape(bits, x->shape().dims());
  Instr* same = b.bitcast_convert(x, shape);
  const int width = tensor::type_bits(bits);
  Instr* sign = b.binary(Opcode::shift_right_arithmetic, same, b.full(shape, width - 1));
  return b.binary(Opcode::xor_, same,
                  b.binary(Opcode::shift_right_logical, sign, b.full(shape, 1)));
}

}  // namespace

Instr* compare_total_order(Instr* x, Builder& b) {
  if (x->attrs_as<CompareAttrs>().type != CompareType::total_order) return nullptr;
  if (!is_static_array(x->operand(0)) || !is_static_array(x->operand(1))) return nullptr;
  const std::optional<Type> bits = integers_like(x->operand(0)->shape().type());
  if (!bits || is_in_comparator(x)) return nullptr;
  return b.compare(direction_of(x), ordered_bits(x->operand(0), *bits, b),
                   ordered_bits(x->operand(1), *bits, b));
}

}  // namespace heddle::opt::rules
