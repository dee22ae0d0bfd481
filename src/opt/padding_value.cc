#include "opt/padding_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle::opt {

using hlo::Instr;
using hlo::Opcode;

Padding number(double value) {
  if (std::isnan(value)) return kUnknown;
  return {Padding::Kind::number, value};
}

std::optional<double> splat(const Instr* instr) {
  if (instr->is(Opcode::broadcast)) return splat(instr->operand(0));
  if (!instr->is(Opcode::constant) || instr->literal().elems() != 1) return std::nullopt;
  const tensor::Type type = instr->literal().type();
  if (tensor::is_complex(type)) return std::nullopt;
  if (tensor::is_float(type)) return instr->literal().get_f64(0);
  return static_cast<double>(instr->literal().get_s64(0));
}

namespace {

double compared(hlo::Direction direction, double a, double b) {
  switch (direction) {
    case hlo::Direction::eq:
      return a == b;
    case hlo::Direction::ne:
      return a != b;
    case hlo::Direction::ge:
      return a >= b;
    case hlo::Direction::gt:
      return a > b;
    case hlo::Direction::le:
      return a <= b;
    case hlo::Direction::lt:
      return a < b;
  }
  return 0;
}

// An infinity or a zero that a valid value cannot make another number, but for those with which the
// valid elements beside it are no numbers either.
Padding beside_valid(Opcode opcode, const Padding& a, const Padding& b) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (opcode == Opcode::subtract && a.is(-infinity) && b.kind == Padding::Kind::valid) return a;
  if (opcode == Opcode::divide && a.is(0) && b.kind == Padding::Kind::valid) return a;
  return kUnknown;
}

}  // namespace

Padding computed(const Instr* instr, const std::vector<Padding>& in) {
  bool numbers = true, valid = true;
  for (const Padding& one : in) {
    numbers = numbers && one.kind == Padding::Kind::number;
    valid = valid && one.kind == Padding::Kind::valid;
  }
  if (valid) return kValid;
  if (!numbers) return in.size() == 2 ? beside_valid(instr->opcode(), in[0], in[1]) : kUnknown;
  switch (instr->opcode()) {
    case Opcode::negate:
      return number(-in[0].value);
    case Opcode::abs:
      return number(std::abs(in[0].value));
    case Opcode::exponential:
      return in[0].value == 0 || std::isinf(in[0].value) ? number(std::exp(in[0].value)) : kUnknown;
    case Opcode::subtract:
      return number(in[0].value - in[1].value);
    case Opcode::multiply:
      return in[0].value == 0 || in[1].value == 0 ? number(in[0].value * in[1].value) : kUnknown;
    case Opcode::divide:
      return in[0].value == 0 ? number(in[0].value / in[1].value) : kUnknown;
    case Opcode::maximum:
      return number(std::max(in[0].value, in[1].value));
    case Opcode::minimum:
      return number(std::min(in[0].value, in[1].value));
    case Opcode::compare:
      return number(
          compared(instr->attrs_as<hlo::CompareAttrs>().direction, in[0].value, in[1].value));
    default:
      return kUnknown;
  }
}

}  // namespace heddle::opt
