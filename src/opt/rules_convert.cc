#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

Type type_of(const Instr* x) { return x->shape().type(); }

// Integer <-> float conversions clamp, integer ones wrap: going through a float is equivalent only
// if the last conversion neither clamps nor wraps.
bool detour_is_exact(Type from, Type over, Type to) {
  if (!converts_exactly(from, over)) return false;
  const bool from_integer = !tensor::is_float(from) && !tensor::is_complex(from);
  const bool over_float = tensor::is_float(over) || tensor::is_complex(over);
  const bool to_integer = tensor::is_integer(to);
  if (from_integer && over_float && to_integer) return converts_exactly(from, to);
  return true;
}

}  // namespace

Instr* convert_same(Instr* x, Builder&) {
  return type_of(x) == type_of(x->operand(0)) ? x->operand(0) : nullptr;
}

Instr* convert_convert(Instr* x, Builder& b) {
  Instr* inner = x->operand(0);
  if (!inner->is(Opcode::convert)) return nullptr;
  Instr* y = inner->operand(0);
  if (!detour_is_exact(type_of(y), type_of(inner), type_of(x))) return nullptr;
  return b.convert(y, type_of(x));
}

// A canonical form, which the rules of compare recognise.
Instr* convert_pred_compare(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (type_of(x) != Type::pred || !(is_integer(y) || is_float(y)) || !is_static_array(y))
    return nullptr;
  if (is_float(y) && !tensor::float_format(type_of(y)).has_zero) return nullptr;
  return b.compare(hlo::Direction::ne, y, b.full(y->shape().without_layout(), 0));
}

Instr* bitcast_convert_same(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (type_of(x) == type_of(y)) return y;
  if (!y->is(Opcode::bitcast_convert)) return nullptr;
  auto width = [](const Instr* i) {
    return type_of(i) == Type::pred ? 8 : tensor::type_bits(type_of(i));
  };
  if (width(x) != width(y) || width(y) != width(y->operand(0))) return nullptr;
  // pred uses only one bit of its byte.
  if (type_of(y) == Type::pred) return nullptr;
  return b.bitcast_convert(y->operand(0), x->shape().without_layout());
}

Instr* reduce_precision_wide(Instr* x, Builder&) {
  const auto& attrs = x->attrs_as<hlo::ReducePrecisionAttrs>();
  const tensor::FloatFormat& format = tensor::float_format(type_of(x));
  const bool wide =
      attrs.exponent_bits >= format.exponent_bits && attrs.mantissa_bits >= format.mantissa_bits;
  return wide ? x->operand(0) : nullptr;
}

}  // namespace heddle::opt::rules
