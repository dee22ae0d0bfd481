// Random bits as arithmetic on counters, counting as XLA does.
#include <array>

#include "opt/random_words.h"
#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

using Algorithm = hlo::RngBitGeneratorAttrs::Algorithm;

class Bits : public RandomWords {
 public:
  using RandomWords::RandomWords;

  Instr* low(Instr* x) { return b_.convert(x, Type::u32); }
  Instr* high(Instr* x) { return low(op(Opcode::shift_right_logical, x, 32)); }
  Instr* whole(Instr* low_, Instr* high_) {
    return op(Opcode::or_, b_.convert(low_, Type::u64),
              op(Opcode::shift_left, b_.convert(high_, Type::u64), 32));
  }
  Instr* rotated(Instr* x, uint64_t by) {
    return op(Opcode::or_, op(Opcode::shift_left, x, by),
              op(Opcode::shift_right_logical, x, 32 - by));
  }
  Instr* place(size_t dimension) {
    return b_.iota(Shape::array(Type::u64, extents_), static_cast<int64_t>(dimension));
  }
  Instr* choose(Instr* which, uint64_t value, Instr* x, Instr* otherwise) {
    Instr* is = b_.compare(hlo::Direction::eq, which, full(number(Type::u64, value)));
    return b_.select(is, full(x), full(otherwise));
  }

  std::array<Instr*, 2> three_fry(Instr* counter, Instr* key) {
    constexpr std::array<std::array<uint64_t, 4>, 2> kRotations = {
        {{13, 15, 26, 6}, {17, 29, 16, 24}}};
    std::array<Instr*, 3> keys{low(key), high(key), nullptr};
    keys[2] = op(Opcode::xor_, op(Opcode::xor_, keys[0], keys[1]), 0x1bd11bda);
    Instr* x = op(Opcode::add, low(counter), keys[0]);
    Instr* y = op(Opcode::add, high(counter), keys[1]);
    for (size_t group = 0; group < 5; ++group) {
      for (const uint64_t rotation : kRotations[group % 2]) {
        x = op(Opcode::add, x, y);
        y = op(Opcode::xor_, rotated(y, rotation), x);
      }
      x = op(Opcode::add, x, keys[(group + 1) % 3]);
      y = op(Opcode::add, y, op(Opcode::add, keys[(group + 2) % 3], group + 1));
    }
    return {x, y};
  }

  std::array<Instr*, 4> philox(Instr* counter, Instr* upper, Instr* key) {
    std::array<Instr*, 4> x{low(counter), high(counter), low(upper), high(upper)};
    Instr *first = low(key), *second = high(key);
    for (int round = 0; round < 10; ++round) {
      Instr* a = op(Opcode::multiply, b_.convert(x[0], Type::u64), 0xd2511f53);
      Instr* c = op(Opcode::multiply, b_.convert(x[2], Type::u64), 0xcd9e8d57);
      x = {op(Opcode::xor_, op(Opcode::xor_, high(c), x[1]), first), low(c),
           op(Opcode::xor_, op(Opcode::xor_, high(a), x[3]), second), low(a)};
      first = op(Opcode::add, first, 0x9e3779b9);
      second = op(Opcode::add, second, 0xbb67ae85);
    }
    return x;
  }
};

// The dimension whose neighbours share a counter: the first even one, else the longest.
size_t shared_dimension(const Ints& extents) {
  size_t longest = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] % 2 == 0) return d;
    if (extents[d] > extents[longest]) longest = d;
  }
  return longest;
}

// One element of the state, as a scalar. The state may be pairs of narrower words, the low word
// first.
Instr* word(Instr* state, int64_t i, Builder& b) {
  if (state->is(Opcode::bitcast_convert) && state->operand(0)->shape().rank() == 2 &&
      state->operand(0)->shape().type() == Type::u32) {
    auto half = [&](int64_t which) {
      return b.reshape(b.slice(state->operand(0), {i, which}, {i + 1, which + 1}, {}), {});
    };
    Instr *low = half(0), *high = half(1);
    return Bits(b, {}).whole(low, high);
  }
  return b.reshape(b.slice(state, {i}, {i + 1}, {}), {});
}

Instr* three_fry_bits(Instr* state, const Shape& shape, uint64_t* used, Builder& b) {
  const Ints extents = shape.extents();
  Bits bits(b, extents);
  Instr *key = word(state, 0, b), *start = word(state, 1, b);
  if (tensor::type_bytes(shape.type()) == 8) {
    *used = static_cast<uint64_t>(shape.elems());
    const auto x = bits.three_fry(bits.op(Opcode::add, bits.position(), start), key);
    return bits.whole(x[0], x[1]);
  }
  const size_t split = shared_dimension(extents);
  Instr* place = bits.number(Type::u64, 0);
  *used = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    Instr* here = bits.place(d);
    if (d == split) here = bits.op(Opcode::shift_right_logical, here, 1);
    place = bits.op(Opcode::add, place, bits.op(Opcode::multiply, here, *used));
    *used *= static_cast<uint64_t>(d == split ? (extents[d] + 1) / 2 : extents[d]);
  }
  const auto x = bits.three_fry(bits.op(Opcode::add, place, start), key);
  return bits.choose(bits.op(Opcode::and_, bits.place(split), 1), 0, x[0], x[1]);
}

Instr* philox_bits(Instr* state, const Shape& shape, uint64_t* used, Builder& b) {
  Bits bits(b, shape.extents());
  const bool pairs = tensor::type_bytes(shape.type()) == 8;
  const bool short_state = state->shape().dim(0) == 2;
  Instr *key = word(state, 0, b), *start = word(state, 1, b);
  Instr* upper = short_state ? key : word(state, 2, b);
  Instr* position = bits.position();
  Instr* counter =
      bits.op(Opcode::add, bits.op(Opcode::shift_right_logical, position, pairs ? 1 : 2), start);
  Instr* wraps = b.compare(hlo::Direction::lt, counter, bits.full(start));
  const auto x =
      bits.philox(counter, bits.op(Opcode::add, b.convert(wraps, Type::u64), upper), key);
  *used = (static_cast<uint64_t>(shape.elems()) * (pairs ? 2 : 1) + 3) / 4;
  Instr* which = bits.op(Opcode::and_, position, pairs ? 1 : 3);
  if (pairs) return bits.choose(which, 0, bits.whole(x[0], x[1]), bits.whole(x[2], x[3]));
  return bits.choose(which, 0, x[0],
                     bits.choose(which, 1, x[1], bits.choose(which, 2, x[2], x[3])));
}

}  // namespace

Instr* random_bits(Instr* x, Builder& b) {
  if (!x->shape().is_tuple() || x->shape().elements().size() != 2) return nullptr;
  const Shape &state_shape = x->shape().elements()[0], &shape = x->shape().elements()[1];
  const bool known = shape.type() == Type::u32 || shape.type() == Type::s32 ||
                     shape.type() == Type::u64 || shape.type() == Type::s64;
  const auto algorithm = x->attrs_as<hlo::RngBitGeneratorAttrs>().algorithm;
  const bool three_fry = algorithm == Algorithm::three_fry;
  if (!known || !shape.is_static() || shape.rank() == 0 || shape.elems() == 0 ||
      state_shape.type() != Type::u64 || state_shape.rank() != 1 || state_shape.dim(0) < 2 ||
      state_shape.dim(0) > (three_fry ? 2 : 3))
    return nullptr;
  Instr* state = x->operand(0);
  uint64_t used = 0;
  Instr* bits =
      three_fry ? three_fry_bits(state, shape, &used, b) : philox_bits(state, shape, &used, b);
  Bits scalars(b, {});
  Instr *key = word(state, 0, b), *counter = word(state, 1, b);
  std::vector<Instr*> next{key, scalars.op(Opcode::add, counter, used)};
  if (state_shape.dim(0) == 3) {
    Instr* wraps = b.compare(hlo::Direction::lt, next[1], counter);
    next.push_back(scalars.op(Opcode::add, word(state, 2, b), b.convert(wraps, Type::u64)));
  }
  for (Instr*& one : next) one = b.reshape(one, {1});
  return b.tuple({b.concatenate(next, 0), b.convert(bits, shape.type())});
}

}  // namespace heddle::opt::rules
