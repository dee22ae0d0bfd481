#include "opt/counted_loop.h"

#include "hlo/holds.h"
#include "opt/match.h"

namespace heddle::opt {
namespace {

// The element of `state` that `x` reads; -1: `x` is something else.
int64_t element_read(const Instr* x, const Instr* state) {
  return x->is(Opcode::get_tuple_element) && x->operand(0) == state ? x->tuple_index() : -1;
}

std::optional<int64_t> scalar_constant(const Instr* x) {
  const Literal* value = splat_of(x);
  if (value == nullptr || !x->shape().is_scalar()) return {};
  return value->get_s64(0);
}

// Wraps as the type does. Not called for u64.
int64_t wrapped(int64_t value, Type type) {
  switch (type) {
    case Type::s8:
      return static_cast<int8_t>(value);
    case Type::s16:
      return static_cast<int16_t>(value);
    case Type::s32:
      return static_cast<int32_t>(value);
    case Type::u8:
      return static_cast<uint8_t>(value);
    case Type::u16:
      return static_cast<uint16_t>(value);
    case Type::u32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

bool is_counter(Type type) {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64 ||
         type == Type::u8 || type == Type::u16 || type == Type::u32;
}

}  // namespace

std::optional<int64_t> trip_count(const Instr* loop, int64_t most) {
  const Computation &condition = *loop->called()[0], &body = *loop->called()[1];
  const Instr *init = loop->operand(0), *test = condition.root(), *next = body.root();
  if (!init->is(Opcode::tuple) || !next->is(Opcode::tuple) || !test->is(Opcode::compare)) return {};
  const auto& compare = test->attrs_as<hlo::CompareAttrs>();
  if (compare.type == hlo::CompareType::total_order) return {};
  int64_t element = -1;
  size_t side = 0;
  for (; side < 2 && element < 0; ++side)
    element = element_read(test->operand(side), condition.parameters()[0]);
  --side;
  if (element < 0) return {};
  const Type type = test->operand(side)->shape().type();
  const Instr* step = next->operand(static_cast<size_t>(element));
  if (!is_counter(type) || !step->is(Opcode::add)) return {};
  const size_t counted = element_read(step->operand(0), body.parameters()[0]) == element ? 0 : 1;
  if (element_read(step->operand(counted), body.parameters()[0]) != element) return {};
  const auto limit = scalar_constant(test->operand(1 - side));
  const auto by = scalar_constant(step->operand(1 - counted));
  const auto first = scalar_constant(init->operand(static_cast<size_t>(element)));
  if (!limit || !by || !first) return {};
  int64_t value = wrapped(*first, type);
  const int64_t bound = wrapped(*limit, type);
  for (int64_t trips = 0; trips <= most; ++trips) {
    if (!hlo::holds(compare.direction, side == 0 ? value : bound, side == 0 ? bound : value))
      return trips;
    value = wrapped(static_cast<int64_t>(static_cast<uint64_t>(value) + static_cast<uint64_t>(*by)),
                    type);
  }
  return {};
}

}  // namespace heddle::opt
