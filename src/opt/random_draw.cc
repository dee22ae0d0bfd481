#include "opt/random_draw.h"

#include <algorithm>
#include <numbers>

#include "interp/interp.h"
#include "opt/random_words.h"

namespace heddle::opt {
namespace {

using hlo::Builder;
using hlo::Direction;

// One draw of rng, as an array of its extents.
class Draw : public RandomWords {
 public:
  Draw(const Instr& instr, Instr* state, Builder& b)
      : RandomWords(b, instr.shape().extents()),
        instr_(instr),
        low_(instr.operand(0)),
        high_(instr.operand(1)),
        start_(word(state, 0)) {}

  static Instr* word(Instr* state, int64_t i, Builder& b) {
    return b.reshape(b.slice(state, {i}, {i + 1}, {}), {});
  }

  Instr* value() {
    const Type type = instr_.shape().type();
    if (tensor::is_float(type)) return floats(type);
    if (type == Type::pred) return b_.convert(op(Opcode::and_, bits(1, 0), 1), type);
    Instr* taken = op(Opcode::remainder, bits(1, 0), range());
    taken = b_.select(full(has_range(Direction::eq)), full(number(Type::u64, 0)), taken);
    return b_.convert(op(Opcode::add, b_.convert(low_, Type::u64), taken), type);
  }

  // Number of words that the draw takes, u64[]: none for integers with an empty range.
  Instr* taken() {
    const bool normal = instr_.attrs_as<hlo::RngAttrs>().normal;
    const auto elems = static_cast<uint64_t>(instr_.shape().elems());
    Instr* all = number(Type::u64, normal ? 2 * elems : elems);
    if (!tensor::is_integer(instr_.shape().type())) return all;
    return b_.select(has_range(Direction::ne), all, number(Type::u64, 0));
  }

 private:
  Instr* word(Instr* state, int64_t i) { return word(state, i, b_); }
  Instr* range() {
    return b_.binary(Opcode::subtract, b_.convert(high_, Type::u64), b_.convert(low_, Type::u64));
  }
  Instr* has_range(Direction direction) {
    return b_.compare(direction, range(), number(Type::u64, 0));
  }

  // 64 random bits per element, word `first` of each element's `count` words: interp::mix of the
  // counter. The terms that are the same for all elements are added as a scalar.
  Instr* bits(uint64_t count, uint64_t first) {
    Instr* x = position();
    if (count > 1) x = op(Opcode::multiply, x, count);
    x = op(Opcode::add, x, op(Opcode::add, start_, 0x9e3779b97f4a7c15 + first));
    x = op(Opcode::multiply, shifted_onto(x, 30), 0xbf58476d1ce4e5b9);
    x = op(Opcode::multiply, shifted_onto(x, 27), 0x94d049bb133111eb);
    return shifted_onto(x, 31);
  }
  Instr* shifted_onto(Instr* x, uint64_t by) {
    return op(Opcode::xor_, x, op(Opcode::shift_right_logical, x, by));
  }

  Instr* f64(double value) { return full(b_.scalar(Type::f64, value)); }
  // In [0, 1): 53 bits, uniformly distributed.
  Instr* unit(Instr* bits) {
    Instr* whole = b_.convert(op(Opcode::shift_right_logical, bits, 11), Type::f64);
    return op(Opcode::multiply, whole, f64(0x1p-53));
  }
  Instr* floats(Type type) {
    Instr *a = b_.convert(low_, Type::f64), *b = b_.convert(high_, Type::f64);
    if (instr_.attrs_as<hlo::RngAttrs>().normal)
      return b_.convert(op(Opcode::add, op(Opcode::multiply, normal(), b), a), type);
    Instr* range = b_.binary(Opcode::subtract, b, a);
    Instr* scaled = op(Opcode::multiply, unit(bits(1, 0)), range);
    Instr* rounded = b_.convert(op(Opcode::add, scaled, a), type);
    // Rounding may reach the excluded upper bound.
    Instr* is_bound = b_.compare(Direction::ge, b_.convert(rounded, Type::f64), full(b));
    return b_.select(is_bound, full(low_), rounded);
  }
  Instr* normal() {
    Instr* u = b_.binary(Opcode::subtract, f64(1), unit(bits(2, 0)));  // > 0
    Instr* v = unit(bits(2, 1));
    Instr* radius = b_.unary(Opcode::sqrt, op(Opcode::multiply, f64(-2), b_.unary(Opcode::log, u)));
    Instr* angle = op(Opcode::multiply, f64(2 * std::numbers::pi), v);
    return op(Opcode::multiply, radius, b_.unary(Opcode::cosine, angle));
  }

  const Instr& instr_;
  Instr *low_, *high_, *start_;
};

// The state after a draw that advances it by `words`, u64[] each.
Instr* advanced(Instr* state, const std::vector<Instr*>& words, Builder& b) {
  std::vector<Instr*> parts;
  for (Instr* word : words) parts.push_back(b.reshape(word, {1}));
  return b.binary(Opcode::add, state, b.concatenate(parts, 0));
}

// Returns the two words, then adds delta to them as a 128-bit number.
Drawn draw_words(const Instr& instr, Instr* state, Builder& b) {
  RandomWords words(b, {});
  const int64_t elems = instr.shape().elems(), known = std::min<int64_t>(elems, 2);
  Instr* value = b.slice(state, {1}, {1 + known}, {});
  if (elems > known) value = b.pad(value, words.number(Type::u64, 0), {0}, {elems - known}, {0});
  value = b.reshape(b.convert(value, instr.shape().type()), instr.shape().extents());
  const auto delta = static_cast<uint64_t>(instr.attrs_as<hlo::RngStateAttrs>().delta);
  Instr* low = words.op(Opcode::add, Draw::word(state, 1, b), delta);
  Instr* wraps = b.compare(Direction::lt, low, words.number(Type::u64, delta));
  return {value, advanced(state,
                          {words.number(Type::u64, 0), words.number(Type::u64, delta),
                           b.convert(wraps, Type::u64)},
                          b)};
}

}  // namespace

Shape random_state_shape() { return Shape::array(Type::u64, {3}); }

Literal random_state_start() {
  const interp::RandomState start;
  const uint64_t words[] = {start.counter, start.words[0], start.words[1]};
  return Literal::from<uint64_t>(random_state_shape(), words);
}

bool is_draw(const Instr* instr) {
  return instr->is(Opcode::rng) || instr->is(Opcode::rng_get_and_update_state);
}

Status check_draw(const Instr& instr) {
  const Shape& shape = instr.shape();
  const bool words = instr.is(Opcode::rng_get_and_update_state);
  // Arrays with bounded dimensions are drawn up to the bound.
  const bool has_extents = std::all_of(shape.dims().begin(), shape.dims().end(),
                                       [](const tensor::Dim& dim) { return dim.size >= 0; });
  // The arithmetic uses several arrays of words, which are wider than the result.
  constexpr int64_t kMostElems = int64_t{1} << 38;
  const bool known = shape.is_array() && has_extents && shape.elems() <= kMostElems &&
                     (tensor::is_integer(shape.type()) ||
                      (!words && (tensor::is_float(shape.type()) || shape.type() == Type::pred)));
  if (known) return {};
  return user_error("%{} ({}): it draws {}; wanted at most {} {} with extents that are bounded",
                    instr.name(), hlo::opcode_text(instr.opcode()), tensor::to_string(shape),
                    kMostElems, words ? "integers" : "floats, integers or pred");
}

Drawn draw(const Instr& instr, Instr* state, Builder& b) {
  if (instr.is(Opcode::rng_get_and_update_state)) return draw_words(instr, state, b);
  Draw one(instr, state, b);
  Instr* value = one.value();
  RandomWords words(b, {});
  return {
      value,
      advanced(state, {one.taken(), words.number(Type::u64, 0), words.number(Type::u64, 0)}, b)};
}

}  // namespace heddle::opt
