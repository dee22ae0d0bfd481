// Rows' extremes with their positions (arg-max, arg-min), combined over the lanes: the extreme
// first, then the first (last) position of those lanes that have it. Combined pair by pair, each
// step would need several comparisons, and its selections would wait for them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "hlo/builder.h"
#include "stitch/row_emitter.h"

namespace heddle::stitch {
namespace {

using hlo::Opcode;
using tensor::Literal;

// What a combine of (value, position, value, position) computes for one set of arguments. Only
// operators whose result depends on nothing but the order of the arguments.
class Outcome {
 public:
  Outcome(const hlo::Computation& combine, const std::array<double, 4>& arguments)
      : arguments_(arguments) {
    for (const hlo::Instr* x : combine.instrs())
      if (!x->is(Opcode::tuple)) values_[x] = value_of(*x);
  }
  bool known() const { return known_; }
  double of(const hlo::Instr* x) const { return values_.at(x); }

 private:
  double value_of(const hlo::Instr& x) {
    const auto at = [&](size_t i) { return values_.at(x.operand(i)); };
    switch (x.opcode()) {
      case Opcode::parameter:
        return arguments_[static_cast<size_t>(x.parameter_number())];
      case Opcode::select:
        return at(0) != 0 ? at(1) : at(2);
      case Opcode::and_:
        return is_truth(x) && at(0) != 0 && at(1) != 0 ? 1 : 0;
      case Opcode::or_:
        return is_truth(x) && (at(0) != 0 || at(1) != 0) ? 1 : 0;
      case Opcode::not_:
        return is_truth(x) && at(0) == 0 ? 1 : 0;
      case Opcode::compare:
        return compared(x, at(0), at(1)) ? 1 : 0;
      default:
        known_ = false;
        return 0;
    }
  }
  bool is_truth(const hlo::Instr& x) {
    known_ = known_ && x.shape().type() == Type::pred;
    return true;
  }
  bool compared(const hlo::Instr& x, double a, double b) {
    const auto& attrs = x.attrs_as<hlo::CompareAttrs>();
    known_ = known_ && is_in_order(attrs.type, x.operand(0)->shape().type()) && !is_mixed(x);
    switch (attrs.direction) {
      case hlo::Direction::eq:
        return a == b;
      case hlo::Direction::ne:
        return a != b;
      case hlo::Direction::lt:
        return a < b;
      case hlo::Direction::le:
        return a <= b;
      case hlo::Direction::gt:
        return a > b;
      case hlo::Direction::ge:
        return a >= b;
    }
    return false;
  }
  static bool is_in_order(hlo::CompareType compared, Type type) {
    if (compared == hlo::CompareType::is_signed) return tensor::is_signed_integer(type);
    if (compared == hlo::CompareType::is_unsigned) return tensor::is_unsigned_integer(type);
    return compared != hlo::CompareType::total_order;
  }
  // Whether a value may be compared with a position, or truth values with each other.
  static bool is_mixed(const hlo::Instr& x) {
    const auto is_position = [](const hlo::Instr* operand) {
      return operand->is(Opcode::parameter) && operand->parameter_number() % 2 == 1;
    };
    for (const hlo::Instr* operand : x.operands())
      if (!operand->is(Opcode::parameter)) return true;
    return is_position(x.operand(0)) != is_position(x.operand(1));
  }

  const std::array<double, 4> arguments_;
  std::unordered_map<const hlo::Instr*, double> values_;
  bool known_ = true;
};

// Whether the combine takes the extreme (NaN first) and the first or last position of equals. All
// orders of two values and two positions are tried. NaNs may come with any of their positions.
bool takes(const hlo::Computation& combine, const Extreme& extreme, bool has_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double a : {1.0, 2.0, nan})
    for (const double b : {1.0, 2.0, nan})
      for (const double i : {3.0, 4.0})
        for (const double j : {3.0, 4.0}) {
          if (!has_nan && (std::isnan(a) || std::isnan(b))) continue;
          const Outcome outcome(combine, {a, i, b, j});
          const double value = outcome.of(combine.root()->operand(0));
          const double position = outcome.of(combine.root()->operand(1));
          const auto beats = [&](double x, double y) {
            return std::isnan(x) ? !std::isnan(y) : extreme.value == Op::min ? x < y : x > y;
          };
          const bool first = beats(a, b), second = beats(b, a);
          const double wanted = first || (!second && std::isnan(a)) ? a : b;
          const double least = extreme.position == Op::min ? std::min(i, j) : std::max(i, j);
          const bool any_position = !first && !second && std::isnan(a);
          if (!outcome.known()) return false;
          if (value != wanted && !(std::isnan(value) && std::isnan(wanted))) return false;
          if (!any_position && position != (first ? i : second ? j : least)) return false;
        }
  return true;
}

}  // namespace

std::optional<Extreme> extreme_of(const hlo::Computation& combine) {
  const auto& parameters = combine.parameters();
  if (parameters.size() != 4 || !combine.root()->is(Opcode::tuple) ||
      combine.root()->operands().size() != 2)
    return {};
  const Type value = parameters[0]->shape().type(), position = parameters[1]->shape().type();
  if (!tensor::is_integer(position) || value == Type::pred || tensor::is_complex(value)) return {};
  for (const Op v : {Op::min, Op::max})
    for (const Op p : {Op::min, Op::max})
      if (takes(combine, {v, p}, tensor::is_float(value))) return Extreme{v, p};
  return {};
}

void RowEmitter::combine_lanes(const Member& member, const Extreme& extreme, Block* block) {
  const ExprId zero = k_.constant(0);
  const auto named = [&](ExprId x) { return name_all({x}, block)[0]; };
  const auto over_lanes = [&](Op op, ExprId x) {
    for (int distance = shuffled_lanes() / 2; distance > 0; distance /= 2)
      x = named(k_.binary(
          op, x, k_.add({Op::shuffle_xor, k_.expr(x).type, {x}, distance, {}, {}, false})));
    return x;
  };
  const ExprId own = named(k_.load(member.partials[0], {zero}));
  const ExprId place = named(k_.load(member.partials[1], {zero}));
  const ExprId best = over_lanes(extreme.value, own);
  ExprId has_it = k_.compare(Op::eq, own, best);
  if (tensor::is_float(k_.expr(own).type))
    has_it = k_.binary(Op::or_, has_it, k_.compare(Op::ne, own, own));
  const Type type = k_.expr(place).type;
  const Literal last =
      hlo::neutral_value(extreme.position == Op::min ? Opcode::minimum : Opcode::maximum, type);
  uint64_t bits = 0;
  std::memcpy(&bits, last.data(), tensor::type_bytes(type));
  const ExprId candidate = named(k_.select(has_it, place, emit_constant(&k_, type, bits)));
  const ExprId position = over_lanes(extreme.position, candidate);
  block->push_back(make_store(member.partials[0], {zero}, best));
  block->push_back(make_store(member.partials[1], {zero}, position));
}

}  // namespace heddle::stitch
