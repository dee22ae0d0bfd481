// Operators that make values from attributes and shapes.
#include <algorithm>
#include <cmath>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

template <typename T>
Literal list_literal(Type type, std::span<const T> values) {
  return Literal::from<T>(Shape::array(type, {static_cast<int64_t>(values.size())}), values);
}

Outputs constant(Op& op) {
  if (op.node().attributes.size() != 1)
    op.fail("{} attributes, wanted one of value, value_float, value_floats, value_int, value_ints",
            op.node().attributes.size());
  if (const proto::Tensor* tensor = op.tensor_attr("value")) {
    Output value = op.tensor_value(*tensor, "value");
    return {tensor->data_type == kStringType ? Output::text(value) : value};
  }
  if (op.has_attr("value_string"))
    return {Output::text(op.text_literal({op.string_attr("value_string", "")}, {}))};
  if (op.has_attr("value_strings")) {
    const std::vector<std::string> texts = op.strings_attr("value_strings");
    return {Output::text(op.text_literal(texts, {static_cast<int64_t>(texts.size())}))};
  }
  if (op.has_attr("value_float")) {
    Literal value(Shape::scalar(Type::f32));
    value.set_f64(0, op.float_attr("value_float", 0));
    return {value};
  }
  if (op.has_attr("value_int")) {
    Literal value(Shape::scalar(Type::s64));
    value.set_s64(0, op.int_attr("value_int", 0));
    return {value};
  }
  if (op.has_attr("value_ints")) return {ints_literal(op.ints_attr("value_ints"))};
  if (op.has_attr("value_floats"))
    return {list_literal<float>(Type::f32, op.floats_attr("value_floats"))};
  op.fail("a constant given by {} is not supported (sparse values are not)",
          quoted(op.node().attributes[0].name));
}

Outputs constant_of_shape(Op& op) {
  const Ints extents = op.check_extents(op.known_ints(0, "input"));
  Literal value(Shape::scalar(Type::f32));
  bool text = false;
  if (const proto::Tensor* tensor = op.tensor_attr("value")) {
    text = tensor->data_type == kStringType;
    const Literal given = op.tensor_value(*tensor, "value");
    if (given.elems() != 1) op.fail("value has {} elements, wanted 1", given.elems());
    value = reshaped(given, {});
  }
  Output result = op.as_many_as(splat(op, op.b.constant(value), extents), 0);
  return {text ? Output::text(result) : result};
}

// Number of elements of start, start + delta, ... before the limit.
int64_t range_count(Op& op) {
  if (tensor::is_float(op.type(0))) {
    const double start = op.known_float(0, "start"), limit = op.known_float(1, "limit"),
                 delta = op.known_float(2, "delta");
    const double count = std::ceil((limit - start) / delta);
    if (!(std::abs(delta) > 0) || !(count <= 1e18))
      op.fail("range from {} to {} by {}", start, limit, delta);
    return static_cast<int64_t>(std::max(0.0, count));
  }
  const int64_t start = op.known_int(0, "start"), limit = op.known_int(1, "limit"),
                delta = op.known_int(2, "delta");
  if (delta == 0) op.fail("delta is 0");
  const __int128 distance = static_cast<__int128>(limit) - start;
  if ((distance > 0) != (delta > 0) || distance == 0) return 0;
  const __int128 step = delta;
  const __int128 count = (distance + step + (delta > 0 ? -1 : 1)) / step;
  return static_cast<int64_t>(std::min<__int128>(count, INT64_MAX));
}

// The same for a limit that the graph computes.
Count computed_count(Op& op) {
  if (tensor::is_float(op.type(0)) || op.known(0) == nullptr || op.known(1) != nullptr ||
      op.known(2) == nullptr || !op.may_count())
    return {range_count(op), nullptr};
  const int64_t start = op.known_int(0, "start"), delta = op.known_int(2, "delta");
  if (delta < 1) return {range_count(op), nullptr};
  Instr* limit = reshape(op, op.b.convert(op.in(1), Type::s64), {});
  const auto step = static_cast<double>(delta);
  Instr* count = binary(op, Opcode::add, limit, step - 1 - static_cast<double>(start));
  if (delta != 1) count = binary(op, Opcode::divide, count, step);
  count = op.b.binary(Opcode::maximum, count, op.b.scalar(Type::s64, 0));
  return op.count(count, Op::kAnyCount, "length of a range");
}

Outputs range_op(Op& op) {
  for (size_t i = 0; i < 3; ++i) {
    if (op.type(i) != op.type(0) || op.shape(i).elems() != 1)
      op.fail("input {} is {}, wanted a scalar of the first one's type", i, to_string(op.shape(i)));
  }
  const Count count = computed_count(op);
  const Ints extents = op.check_extents({count.extent});
  Instr* steps = iota(op, op.type(0), extents, 0);
  const double start = op.known_or_fail(0, "start").get_f64(0);
  const double delta = op.known_or_fail(2, "delta").get_f64(0);
  if (delta != 1)
    steps = op.b.binary(Opcode::multiply, steps, splat(op, reshape(op, op.in(2), {}), extents));
  if (start != 0)
    steps = op.b.binary(Opcode::add, steps, splat(op, reshape(op, op.in(0), {}), extents));
  if (start == 0 && delta == 1) steps = op.rows_like(steps, 1);
  return {op.first_rows(steps, count)};
}

Outputs trilu(Op& op) {
  const int64_t rank = op.rank(0);
  if (rank < 2)
    op.fail("input is {}; Trilu is defined for 2 or more dimensions", to_string(op.shape(0)));
  const bool upper = op.int_attr("upper", 1) != 0;
  const int64_t limit = op.limits().value_elems;
  const int64_t k = op.has(1) ? std::clamp(op.known_int(1, "k"), -limit, limit) : 0;
  const Ints extents = op.shape(0).extents();
  const Ints matrix(extents.end() - 2, extents.end());
  Instr* row = iota(op, Type::s32, matrix, 0);
  Instr* column = iota(op, Type::s32, matrix, 1);
  if (k != 0) row = binary(op, Opcode::add, row, static_cast<double>(k));
  Instr* kept = op.b.compare(upper ? Direction::ge : Direction::le, column, row);
  return {select(op, kept, op.in(0), op.b.scalar(op.type(0), 0))};
}

Outputs eye_like(Op& op) {
  if (op.rank(0) != 2)
    op.fail("input is {}; EyeLike is defined for 2 dimensions", to_string(op.shape(0)));
  const int64_t limit = op.limits().value_elems;
  const int64_t k = std::clamp(op.int_attr("k", 0), -limit, limit);
  Type type = op.type(0);
  if (op.has_attr("dtype")) type = element_type(op.int_attr("dtype", 0), op.describe());
  const Ints extents = op.shape(0).extents();
  Instr* row = binary(op, Opcode::add, iota(op, Type::s32, extents, 0), static_cast<double>(k));
  Instr* on = op.b.compare(Direction::eq, row, iota(op, Type::s32, extents, 1));
  return {op.b.convert(on, type)};
}

// values: [off, on]. Positions outside -depth..depth-1 give an all-off row.
Outputs one_hot(Op& op) {
  const Literal& depth_value = op.known_or_fail(1, "depth");
  if (depth_value.elems() != 1) op.fail("depth is {}, wanted one", to_string(depth_value.shape()));
  const double depth_number = depth_value.get_f64(0);
  if (!(depth_number >= 1 && depth_number <= static_cast<double>(op.limits().value_elems)))
    op.fail("depth is {}", depth_number);
  const auto depth = static_cast<int64_t>(depth_number);
  if (op.rank(2) != 1 || op.shape(2).dim(0) != 2)
    op.fail("values is {}, wanted [off, on]", to_string(op.shape(2)));
  const int64_t rank = op.rank(0) + 1;
  const int64_t axis = op.axis_attr(-1, rank);
  Ints extents = op.shape(0).extents();
  extents.insert(extents.begin() + axis, depth);
  op.check_extents(extents);
  Instr* indices = op.b.convert(op.in(0), Type::s64);
  Instr* moved = binary(op, Opcode::add, indices, static_cast<double>(depth));
  indices = op.b.select(compare(op, Direction::lt, indices, 0), moved, indices);
  Ints dims = range(0, rank);
  dims.erase(dims.begin() + axis);
  Instr* hot = op.b.compare(Direction::eq, op.b.broadcast(indices, extents, dims),
                            iota(op, Type::s64, extents, axis));
  Instr* off = reshape(op, op.b.slice(op.in(2), {0}, {1}, {}), {});
  Instr* on = reshape(op, op.b.slice(op.in(2), {1}, {2}, {}), {});
  return {select(op, hot, on, off)};
}

constexpr OpEntry kOps[] = {
    {"Constant", 0, 0, constant}, {"ConstantOfShape", 1, 1, constant_of_shape},
    {"EyeLike", 1, 1, eye_like},  {"OneHot", 3, 3, one_hot, true, Text::passes},
    {"Range", 3, 3, range_op},    {"Trilu", 1, 2, trilu},
};

}  // namespace

std::span<const OpEntry> generate_ops() { return kOps; }

}  // namespace heddle::import
