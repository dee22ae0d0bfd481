#include "import/onnx_ml.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string_view>

namespace heddle::import::ml {
namespace {

Instr* sum_of_rows(Op& op, Instr* x) {
  return broadcast_back(op, op.b.reduce(Opcode::add, x, {1}), x->shape().extents(), {1});
}

Instr* less_maximum(Op& op, Instr* x) {
  Instr* largest = op.b.reduce(Opcode::maximum, x, {1});
  return op.b.binary(Opcode::subtract, x, broadcast_back(op, largest, x->shape().extents(), {1}));
}

// Zeros stay zero: they are classes without any vote.
Instr* softmax_zero(Op& op, Instr* x) {
  constexpr double kZero = 1e-7;
  Instr* something = compare(op, Direction::gt, op.b.unary(Opcode::abs, x), kZero);
  Instr* e = op.b.unary(Opcode::exponential, less_maximum(op, x));
  e = op.b.select(something, e,
                  op.b.binary(Opcode::multiply, x,
                              op.b.unary(Opcode::exponential,
                                         op.b.binary(Opcode::subtract, less_maximum(op, x), x))));
  Instr* counted = op.b.select(something, e, op.b.full(x->shape(), 0));
  return op.b.binary(Opcode::divide, e, sum_of_rows(op, counted));
}

// sqrt(2) erfinv(2 x - 1), by the closed form of erfinv in ONNX's reference.
Instr* probit(Op& op, Instr* x) {
  const auto number = [&](double value) { return op.b.full(x->shape(), value); };
  const auto times = [&](Instr* a, Instr* b) { return op.b.binary(Opcode::multiply, a, b); };
  constexpr double kA = 0.147, kPi = 3.14159;
  Instr* y = binary(op, Opcode::subtract, binary(op, Opcode::multiply, x, 2), 1);
  Instr* product =
      times(op.b.binary(Opcode::subtract, number(1), y), op.b.binary(Opcode::add, number(1), y));
  Instr* log = op.b.unary(Opcode::log, product);
  Instr* v = binary(op, Opcode::add, binary(op, Opcode::multiply, log, 0.5), 2 / (kPi * kA));
  Instr* root = op.b.unary(Opcode::sqrt, op.b.binary(Opcode::subtract, times(v, v),
                                                     binary(op, Opcode::multiply, log, 1 / kA)));
  Instr* size = op.b.unary(Opcode::sqrt, op.b.binary(Opcode::subtract, root, v));
  Instr* negative = compare(op, Direction::lt, y, 0);
  Instr* signed_size = op.b.select(negative, op.b.unary(Opcode::negate, size), size);
  return binary(op, Opcode::multiply, signed_size, std::sqrt(2.0));
}

}  // namespace

Transform transform_attr(Op& op) {
  const std::string name = op.string_attr("post_transform", "NONE");
  if (name == "NONE") return Transform::none;
  if (name == "SOFTMAX") return Transform::softmax;
  if (name == "LOGISTIC") return Transform::logistic;
  if (name == "SOFTMAX_ZERO") return Transform::softmax_zero;
  if (name == "PROBIT") return Transform::probit;
  op.fail("post_transform is {}, wanted NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT",
          quoted(name));
}

Instr* transformed(Op& op, Instr* scores, Transform transform) {
  switch (transform) {
    case Transform::none:
      return scores;
    case Transform::softmax: {
      Instr* e = op.b.unary(Opcode::exponential, less_maximum(op, scores));
      return op.b.binary(Opcode::divide, e, sum_of_rows(op, e));
    }
    case Transform::logistic:
      return op.b.unary(Opcode::logistic, scores);
    case Transform::softmax_zero:
      return softmax_zero(op, scores);
    case Transform::probit:
      return probit(op, scores);
  }
  return scores;
}

Labels labels_attr(Op& op, const char* numbers, const char* strings) {
  Labels labels{op.ints_attr(numbers), op.strings_attr(strings)};
  if (!labels.numbers.empty() && !labels.strings.empty())
    op.fail("both {} and {} are given", numbers, strings);
  if (labels.count() == 0) op.fail("one of {} and {} is wanted", numbers, strings);
  return labels;
}

Output labels_at(Op& op, const Labels& labels, Instr* positions) {
  if (labels.are_strings()) {
    Literal ids = op.text_literal(labels.strings, {labels.count()});
    return Output::text(op.b.take(op.b.constant(std::move(ids)), positions, 0));
  }
  bool counts = true;  // 0, 1, 2, ...
  for (size_t i = 0; i < labels.numbers.size(); ++i)
    counts = counts && labels.numbers[i] == static_cast<int64_t>(i);
  if (counts) return op.b.convert(positions, Type::s64);
  return op.b.take(op.b.constant(ints_literal(labels.numbers)), positions, 0);
}

Instr* argmax(Op& op, Instr* scores) {
  const Ints extents = scores->shape().extents();
  const int64_t last = extents[1] - 1;
  if (last < 0) op.fail("there is no class");
  Instr* largest = broadcast_back(op, op.b.reduce(Opcode::maximum, scores, {1}), extents, {1});
  Instr* is_largest = op.b.compare(Direction::eq, scores, largest);
  Instr* place = iota(op, Type::s32, extents, 1);
  Instr* none = op.b.full(place->shape(), static_cast<double>(last));
  return op.b.reduce(Opcode::minimum, op.b.select(is_largest, place, none), {1});
}

int64_t order_key(double x, Type type) {
  if (type == Type::f64) {
    const auto bits = std::bit_cast<int64_t>(x);
    return std::isnan(x) ? INT64_MAX : bits < 0 ? -(bits & INT64_MAX) : bits;
  }
  const auto bits = std::bit_cast<int32_t>(static_cast<float>(x));
  return std::isnan(x) ? INT32_MAX : bits < 0 ? -int64_t{bits & INT32_MAX} : bits;
}

Instr* order_keys(Op& op, Instr* x) {
  const Ints extents = x->shape().extents();
  const Type word = x->shape().type() == Type::f64 ? Type::s64 : Type::s32;
  const auto number = [&](int64_t value) {
    Literal literal(Shape::scalar(word));
    literal.set_s64(0, value);
    return splat(op, op.b.constant(literal), extents);
  };
  const bool wide = word == Type::s64;
  Instr* bits = op.b.bitcast_convert(x, Shape::array(word, extents));
  Instr* mirrored = op.b.binary(Opcode::subtract, number(wide ? INT64_MIN : INT32_MIN), bits);
  Instr* ordered = op.b.select(compare(op, Direction::lt, bits, 0), mirrored, bits);
  Instr* nan = op.b.compare(Direction::ne, x, x);
  return op.b.select(nan, number(wide ? INT64_MAX : INT32_MAX), ordered);
}

Instr* find_keys(Op& op, Instr* x, const Ints& keys) {
  const auto count = static_cast<int64_t>(keys.size());
  const Ints extents = x->shape().extents();
  if (count == 0) return op.b.full(Shape::array(Type::s32, extents), 0);
  Ints order = range(0, count);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  const auto key = [&](int64_t i) {
    return keys[static_cast<size_t>(order[static_cast<size_t>(i)])];
  };
  x = op.b.convert(x, Type::s64);
  const auto number = [&](int64_t value) {
    return splat(op, op.b.constant(reshaped(ints_literal({value}), {})), extents);
  };
  // Dense keys use a lookup table of positions; others binary search.
  const uint64_t span = static_cast<uint64_t>(key(count - 1)) - static_cast<uint64_t>(key(0));
  if (span < 4 * static_cast<uint64_t>(count) + 64) {
    const auto size = static_cast<int64_t>(span) + 1;
    Literal places(Shape::array(Type::s32, {size}));
    for (int64_t i = 0; i < size; ++i) places.set_s64(i, count);
    for (int64_t i = 0; i < count; ++i)
      places.set_s64(key(i) - key(0), order[static_cast<size_t>(i)]);
    Instr* in_range = op.b.binary(Opcode::and_, op.b.compare(Direction::ge, x, number(key(0))),
                                  op.b.compare(Direction::le, x, number(key(count - 1))));
    Instr* at = op.b.select(in_range, op.b.binary(Opcode::subtract, x, number(key(0))), number(0));
    Instr* place = op.b.take(op.b.constant(places), op.b.convert(at, Type::s32), 0);
    return select(op, in_range, place, op.b.scalar(Type::s32, static_cast<double>(count)));
  }
  Ints sorted;
  for (int64_t i = 0; i < count; ++i) sorted.push_back(key(i));
  Instr* table = op.b.constant(ints_literal(sorted));
  Instr* low = op.b.full(Shape::array(Type::s32, extents), 0);
  for (auto half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)) / 2); half > 0;
       half /= 2) {  // the last key <= x, or the first key
    Instr* next = binary(op, Opcode::add, low, static_cast<double>(half));
    Instr* inside = compare(op, Direction::lt, next, static_cast<double>(count));
    Instr* at = binary(op, Opcode::minimum, next, static_cast<double>(count - 1));
    Instr* reached = op.b.compare(Direction::le, op.b.take(table, at, 0), x);
    low = op.b.select(op.b.binary(Opcode::and_, inside, reached), at, low);
  }
  Instr* found = op.b.compare(Direction::eq, op.b.take(table, low, 0), x);
  Literal places(Shape::array(Type::s32, {count}));
  for (int64_t i = 0; i < count; ++i) places.set_s64(i, order[static_cast<size_t>(i)]);
  Instr* place = op.b.take(op.b.constant(places), low, 0);
  return select(op, found, place, op.b.scalar(Type::s32, static_cast<double>(count)));
}

Instr* table_input(Op& op, size_t input, Type type) {
  const Shape& shape = op.shape(input);
  if (op.is_text(input) || tensor::is_complex(shape.type()) || shape.rank() < 1 || shape.rank() > 2)
    op.fail("input {} is {}, wanted numbers [rows, features]", input, to_string(shape));
  Instr* x = op.b.convert(op.in(input), type);
  return shape.rank() == 1 ? reshape(op, x, {1, shape.dim(0)}) : x;
}

Instr* columns(Op& op, Instr* x, int64_t from, int64_t to) {
  if (from == 0 && to == x->shape().dim(1)) return x;
  return op.b.slice(x, {0, from}, {x->shape().dim(0), to}, {});
}

Instr* constant_list(Op& op, Type type, const std::vector<double>& values, const Ints& extents) {
  if (product(extents) != static_cast<int64_t>(values.size()))
    op.fail("{} numbers where [{}] are wanted", values.size(), fmt::join(extents, ","));
  Literal literal(Shape::array(type, extents));
  for (size_t i = 0; i < values.size(); ++i) literal.set_f64(static_cast<int64_t>(i), values[i]);
  return op.b.constant(std::move(literal));
}

std::vector<double> doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// x [rows, K] times the transposed rows of `weights` [targets, K].
Instr* times_rows(Op& op, Instr* x, const std::vector<float>& weights, int64_t targets,
                  const char* what) {
  const int64_t width = x->shape().dim(1);
  if (targets < 1 || static_cast<int64_t>(weights.size()) != targets * width)
    op.fail("{} has {} numbers; {} rows of {} features want {}", what, weights.size(), targets,
            width, targets * width);
  Literal turned(Shape::array(x->shape().type(), {width, targets}));
  for (int64_t t = 0; t < targets; ++t) {
    for (int64_t k = 0; k < width; ++k)
      turned.set_f64(k * targets + t,
                     static_cast<double>(weights[static_cast<size_t>(t * width + k)]));
  }
  return matrix_product(op, x, op.b.constant(std::move(turned)));
}

Instr* add_row(Op& op, Instr* x, const std::vector<float>& values, const char* what) {
  if (values.empty()) return x;
  const int64_t width = x->shape().dim(1);
  if (static_cast<int64_t>(values.size()) != width)
    op.fail("{} has {} numbers, wanted {}", what, values.size(), width);
  Instr* row = constant_list(op, x->shape().type(), doubles(values), {width});
  return op.b.binary(Opcode::add, x, broadcast_along(op, row, x->shape().extents(), 1));
}

}  // namespace heddle::import::ml
