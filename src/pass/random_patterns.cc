// Patterns of random modules: elementwise operators, and movement of data.
#include <algorithm>
#include <cmath>

#include "pass/random_builder.h"

namespace heddle::pass {

void RandomBuilder::elementwise_unary() {
  Value x = value(float_type());
  switch (random_.below(14)) {
    case 0:
      keep(unary(Opcode::tanh, x, 1));
      return;
    case 1:
      keep(unary(Opcode::logistic, x, 1));
      return;
    case 2:
      x = tamed(x, 3);
      keep(unary(Opcode::exponential, x, std::exp(x.bound)));
      return;
    case 3:
      keep({b_.unary(Opcode::negate, x.instr), x.bound, x.exact});
      return;
    case 4:
      keep({b_.unary(Opcode::abs, x.instr), x.bound, x.exact});
      return;
    case 5: {  // log(|x| + 1)
      Value one = full(x.type(), x.shape().extents(), 1);
      Value y = binary(Opcode::add, {b_.unary(Opcode::abs, x.instr), x.bound, false}, one);
      keep(unary(Opcode::log, y, std::log1p(x.bound)));
      return;
    }
    case 6: {  // sqrt or rsqrt of x*x + 1
      Value one = full(x.type(), x.shape().extents(), 1);
      Value y = binary(Opcode::add, binary(Opcode::multiply, x, x), one);
      const bool root = random_.one_in(2);
      keep(unary(root ? Opcode::sqrt : Opcode::rsqrt, y, root ? std::sqrt(y.bound) : 1));
      return;
    }
    case 7:
      keep(unary(random_.one_in(2) ? Opcode::sine : Opcode::cosine, tamed(x, kMaxAngle), 1));
      return;
    case 8:
      keep(unary(Opcode::erf, x, 1));
      return;
    case 9:
      x = tamed(x, 3);
      keep(unary(Opcode::exponential_minus_one, x, std::exp(x.bound)));
      return;
    case 10: {  // rounding and signs are discontinuous
      Value y = x.exact ? x : parameter(x.type(), x.shape().extents());
      const std::vector<Opcode> jumps = {Opcode::floor, Opcode::ceil, Opcode::sign,
                                         Opcode::round_nearest_even, Opcode::round_nearest_afz};
      keep({b_.unary(random_.pick(jumps), y.instr), y.bound + 1, true});
      return;
    }
    case 11: {  // x * sigmoid(x)
      keep(binary(Opcode::multiply, x, unary(Opcode::logistic, x, 1)));
      return;
    }
    default:  // relu
      keep(binary(Opcode::maximum, x, full(x.type(), x.shape().extents(), 0)));
  }
}

void RandomBuilder::elementwise_binary() {
  Value a = value(float_type());
  Value b = value(a.type(), a.shape().extents());
  if (random_.one_in(6)) {  // a / (|b| + 1)
    Value one = full(b.type(), b.shape().extents(), 1);
    Value d = binary(Opcode::add, {b_.unary(Opcode::abs, b.instr), b.bound, false}, one);
    keep({b_.binary(Opcode::divide, a.instr, d.instr), a.bound, false});
    return;
  }
  const std::vector<Opcode> opcodes = {Opcode::add,      Opcode::add,     Opcode::subtract,
                                       Opcode::multiply, Opcode::maximum, Opcode::minimum};
  keep(binary(random_.pick(opcodes), a, b));
}

void RandomBuilder::elementwise_ternary() {
  Value a = value(float_type());
  const Ints extents = a.shape().extents();
  if (random_.one_in(4)) {
    const bool scalars = random_.one_in(2);
    const Ints ends = scalars ? Ints{} : extents;
    keep({b_.clamp(full(a.type(), ends, -0.5).instr, a.instr, full(a.type(), ends, 0.75).instr),
          std::max(a.bound, 0.75), a.exact});
    return;
  }
  Value b = value(a.type(), extents);
  keep({b_.select(mask(extents).instr, a.instr, b.instr), std::max(a.bound, b.bound),
        a.exact && b.exact});
}

void RandomBuilder::integers() {
  Value a = value(Type::s32);
  Value b = value(Type::s32, a.shape().extents());
  const std::vector<Opcode> opcodes = {Opcode::add,     Opcode::subtract, Opcode::multiply,
                                       Opcode::maximum, Opcode::minimum,  Opcode::and_,
                                       Opcode::or_,     Opcode::xor_};
  const Opcode opcode = random_.pick(opcodes);
  Value c = binary(opcode, a, b);
  const bool bits = opcode == Opcode::or_ || opcode == Opcode::xor_ || opcode == Opcode::and_;
  if (bits) c.bound = 2 * (a.bound + b.bound + 1);
  keep(c);
}

void RandomBuilder::conversion() {
  if (random_.one_in(3)) {  // from integers or predicates
    Value x = random_.one_in(2) ? value(Type::s32) : mask(shape());
    if (x.bound > 1000) x = parameter(Type::s32, x.shape().extents());
    keep({b_.convert(x.instr, Type::f32), x.bound, true});
    return;
  }
  Value x = value(float_type());
  std::vector<Type> types = {Type::f32};
  if (options_.wide) types.push_back(Type::f64);
  // Rounding to fewer bits is discontinuous, so only exact values are converted to narrow types.
  if (options_.narrow && x.exact) types.insert(types.end(), {Type::f16, Type::bf16});
  const Type to = random_.pick(types);
  const bool narrows = tensor::type_bits(to) < tensor::type_bits(x.type());
  if (narrows && !x.exact && to != Type::f32) return;
  keep({b_.convert(x.instr, to), x.bound, x.exact});
}

void RandomBuilder::broadcast() {
  Value x = value_of_rank(float_type(), 0, 2);
  Ints extents, dimensions;
  const Ints operand = x.shape().extents();
  int64_t elems = x.shape().elems();
  for (size_t d = 0; d <= operand.size(); ++d) {
    const int64_t extent = random_.pick(extents_);
    if (random_.one_in(2) && elems * extent <= options_.max_elems) {
      extents.push_back(extent);
      elems *= extent;
    }
    if (d == operand.size()) break;
    dimensions.push_back(static_cast<int64_t>(extents.size()));
    extents.push_back(operand[d]);
  }
  keep({b_.broadcast(x.instr, extents, dimensions), x.bound, x.exact});
}

// Merges adjacent dimensions, splits one, adds or drops dimensions of extent 1.
void RandomBuilder::reshape() {
  Value x = value(float_type());
  Ints extents;
  for (int64_t extent : x.shape().extents()) {
    const bool merges = !extents.empty() && random_.one_in(3);
    if (merges) {
      extents.back() *= extent;
    } else if (extent % 2 == 0 && random_.one_in(3)) {
      extents.insert(extents.end(), {extent / 2, 2});
    } else if (extent != 1 || random_.one_in(2)) {
      extents.push_back(extent);
    }
    if (random_.one_in(6)) extents.push_back(1);
  }
  keep({b_.reshape(x.instr, extents), x.bound, x.exact});
}

void RandomBuilder::transpose() {
  Value x = value_of_rank(float_type(), 2, 6);
  keep({b_.transpose(x.instr, permutation(x.shape().rank())), x.bound, x.exact});
}

void RandomBuilder::slice() {
  Value x = value_of_rank(float_type(), 1, 6);
  Ints starts, limits, strides;
  for (int64_t extent : x.shape().extents()) {
    const bool all = random_.one_in(2);
    starts.push_back(all ? 0 : random_.below(extent));
    limits.push_back(all ? extent : starts.back() + 1 + random_.below(extent - starts.back()));
    strides.push_back(random_.one_in(3) ? 1 + random_.below(3) : 1);
  }
  keep({b_.slice(x.instr, starts, limits, strides), x.bound, x.exact});
}

void RandomBuilder::pad() {
  Value x = value_of_rank(float_type(), 1, 4);
  Ints low, high, interior;
  for (int64_t extent : x.shape().extents()) {
    low.push_back(random_.one_in(2) ? 0 : random_.below(3));
    high.push_back(random_.one_in(2) ? 0 : random_.below(3) - (extent > 1 ? 1 : 0));
    interior.push_back(random_.one_in(6) ? 1 : 0);
  }
  Value v = full(x.type(), {}, random_.one_in(2) ? 0 : 0.5);
  Value y{b_.pad(x.instr, v.instr, low, high, interior), std::max(x.bound, 0.5), x.exact};
  keep(y);
}

void RandomBuilder::concatenate() {
  Value x = value_of_rank(float_type(), 1, 4);
  const int64_t d = random_.below(x.shape().rank());
  std::vector<Instr*> parts{x.instr};
  Value all = x;
  const int64_t count = 1 + random_.below(3);
  for (int64_t i = 0; i < count; ++i) {
    Ints extents = x.shape().extents();
    if (random_.one_in(3)) extents[static_cast<size_t>(d)] = 1;
    Value part = value(x.type(), extents);
    parts.push_back(part.instr);
    all.bound = std::max(all.bound, part.bound);
    all.exact &= part.exact;
  }
  all.instr = b_.concatenate(parts, d);
  keep(all);
}

void RandomBuilder::reverse() {
  Value x = value_of_rank(float_type(), 1, 6);
  keep({b_.reverse(x.instr, some_dimensions(x.shape().rank())), x.bound, x.exact});
}

// Something that a simplifier should remove, inside something that it should keep.
void RandomBuilder::neutral() {
  Value x = value(float_type());
  const Ints extents = x.shape().extents();
  auto number = [&](double v) { return full(x.type(), extents, v).instr; };
  Instr* y = nullptr;
  switch (random_.below(10)) {
    case 0:
      y = b_.binary(Opcode::multiply, x.instr, number(1));
      break;
    case 1:
      y = b_.binary(Opcode::subtract, x.instr, number(0));
      break;
    case 2:
      y = b_.binary(Opcode::add, number(0), x.instr);
      break;
    case 3:
      y = b_.unary(Opcode::negate, b_.unary(Opcode::negate, x.instr));
      break;
    case 4:
      y = b_.binary(Opcode::divide, x.instr, number(random_.one_in(2) ? 1 : 2));
      break;
    case 5:
      y = b_.select(mask(extents).instr, x.instr, x.instr);
      break;
    case 6:
      y = b_.binary(Opcode::power, x.instr, number(random_.one_in(2) ? 1 : 2));
      x = {x.instr, std::max(x.bound, x.bound * x.bound), false};
      break;
    case 7:
      y = b_.binary(Opcode::maximum, x.instr, x.instr);
      break;
    case 8: {  // a duplicate, for cse
      Value other = value(x.type(), extents);
      Value a = binary(Opcode::multiply, x, other), b = binary(Opcode::multiply, x, other);
      Value sum = binary(Opcode::add, a, b);
      keep(sum);
      return;
    }
    default:
      y = b_.convert(b_.convert(x.instr, Type::f64), x.type());
  }
  keep({y, x.bound, x.exact});
}

// A reshape or transpose, an elementwise operator, and the inverse movement.
void RandomBuilder::move_there_and_back() {
  Value x = value_of_rank(float_type(), 1, 4);
  const Ints extents = x.shape().extents();
  const Ints order = permutation(x.shape().rank());
  const bool turn = random_.one_in(2);
  Value y = x;
  y.instr = turn ? b_.transpose(x.instr, order) : b_.reshape(x.instr, {x.shape().elems()});
  y = binary(Opcode::multiply, y, value(y.type(), y.shape().extents()));
  if (turn) {
    Ints back(order.size());
    for (size_t d = 0; d < order.size(); ++d)
      back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
    y.instr = b_.transpose(y.instr, back);
  } else {
    y.instr = b_.reshape(y.instr, extents);
  }
  keep(y);
}

}  // namespace heddle::pass
