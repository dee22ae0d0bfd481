// Reductions over axes.
#include <algorithm>

#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

struct Reduction {
  Ints dims;  // sorted; empty: nothing to reduce
  bool keep = true;
};

// Axes: an attribute, or from opset `input_since` on an input. If none are given: all dimensions,
// unless noop_with_empty_axes.
Reduction read_reduction(Op& op, int64_t input_since) {
  Reduction result;
  result.keep = op.int_attr("keepdims", 1) != 0;
  const bool noop = op.int_attr("noop_with_empty_axes", 0) != 0;
  Ints axes;
  if (op.opset() >= input_since) {
    if (op.has(1)) axes = op.known_ints(1, "axes");
  } else {
    if (op.has(1))
      op.fail("axes as an input; at opset {} they are the attribute `axes`, an input from {} on",
              op.opset(), input_since);
    axes = op.ints_attr("axes");
  }
  const int64_t rank = op.rank(0);
  if (axes.empty() && noop) return result;
  result.dims = axes.empty() ? range(0, rank) : op.axes(axes, rank);
  return result;
}

Instr* finish(Op& op, Instr* reduced, const Reduction& reduction) {
  if (!reduction.keep) return reduced;
  return reshape(op, reduced, keeping(op.shape(0).extents(), reduction.dims));
}

// ReduceSum takes its axes as an input from opset 13 on, the others from 18 on.
constexpr int64_t kSumSince = 13, kOthersSince = 18;

Instr* reduce(Op& op, Opcode opcode, Instr* x, const Ints& dims) {
  return dims.empty() ? x : op.b.reduce(opcode, x, dims);
}

// If the result is a function of a sum, integers are summed as f64, because the function of a sum
// that wraps is meaningless.
Type function_type(Type type) { return tensor::is_float(type) ? compute_type(type) : Type::f64; }

// before(x), reduced by addition, after(sum), all in `in`. Half precision is summed in f32.
template <typename Before, typename After>
Outputs sum_like(Op& op, int64_t since, Type in, Before before, After after) {
  const Reduction reduction = read_reduction(op, since);
  const Type type = op.type(0);
  Instr* x = before(op.b.convert(op.in(0), in));
  x = after(finish(op, reduce(op, Opcode::add, x, reduction.dims), reduction));
  return {op.b.convert(x, type)};
}

Instr* same(Instr* x) { return x; }

// Sums of integers are modulo 2^bits, in any order.
Outputs reduce_sum(Op& op) { return sum_like(op, kSumSince, compute_type(op.type(0)), same, same); }

Outputs reduce_sum_square(Op& op) {
  const auto square = [&](Instr* x) { return op.b.binary(Opcode::multiply, x, x); };
  return sum_like(op, kOthersSince, compute_type(op.type(0)), square, same);
}

Outputs reduce_l1(Op& op) {
  const auto size = [&](Instr* x) {
    return tensor::is_unsigned_integer(op.type(0)) ? x : op.b.unary(Opcode::abs, x);
  };
  return sum_like(op, kOthersSince, compute_type(op.type(0)), size, same);
}

Outputs reduce_l2(Op& op) {
  const auto square = [&](Instr* x) { return op.b.binary(Opcode::multiply, x, x); };
  const auto root = [&](Instr* x) { return op.b.unary(Opcode::sqrt, x); };
  return sum_like(op, kOthersSince, function_type(op.type(0)), square, root);
}

Outputs reduce_log_sum(Op& op) {
  const auto log = [&](Instr* x) { return op.b.unary(Opcode::log, x); };
  return sum_like(op, kOthersSince, function_type(op.type(0)), same, log);
}

// The mean of integers is that of their exact sum (for 64 bits: modulo 2^64), towards zero; of an
// empty set it is 0, as the conversion of NaN is.
Outputs reduce_mean(Op& op) {
  const Reduction reduction = read_reduction(op, kOthersSince);
  const Type type = op.type(0);
  const bool is_integer = tensor::is_integer(type);
  const Type wide = tensor::is_signed_integer(type) ? Type::s64 : Type::u64;
  const Ints rest = without(op.shape(0).extents(), reduction.dims);
  Instr* x = op.b.convert(op.in(0), is_integer ? wide : compute_type(type));
  if (is_integer && op.shape(0).elems() == 0) {
    x = op.b.full(Shape::array(wide, rest), 0);
  } else if (!reduction.dims.empty()) {
    x = mean(op, x, reduction.dims);
  }
  return {op.b.convert(finish(op, x, reduction), type)};
}

// m + log sum e^(x - m), m the maximum (0 if it is infinite, to avoid NaN).
Outputs reduce_log_sum_exp(Op& op) {
  const Reduction reduction = read_reduction(op, kOthersSince);
  const Type type = op.type(0);
  const Ints extents = op.shape(0).extents();
  Instr* x = op.b.convert(op.in(0), function_type(type));
  Instr* largest = reduce(op, Opcode::maximum, x, reduction.dims);
  largest = select(op, op.b.unary(Opcode::is_finite, largest), largest,
                   op.b.scalar(largest->shape().type(), 0));
  Instr* centred =
      op.b.binary(Opcode::subtract, x, broadcast_back(op, largest, extents, reduction.dims));
  Instr* total = reduce(op, Opcode::add, op.b.unary(Opcode::exponential, centred), reduction.dims);
  Instr* result = op.b.binary(Opcode::add, op.b.unary(Opcode::log, total), largest);
  return {op.b.convert(finish(op, result, reduction), type)};
}

template <Opcode opcode, Opcode boolean>
Outputs plain(Op& op) {
  const Reduction reduction = read_reduction(op, kOthersSince);
  const Opcode used = op.type(0) == Type::pred ? boolean : opcode;
  return {finish(op, reduce(op, used, op.in(0), reduction.dims), reduction)};
}

// {(value, position), (value, position)} -> the larger (smaller) value with its position; the first
// (last) one of equals. A NaN wins against every number, as in numpy, and NaNs are equal: so the
// order of combination does not matter.
hlo::Computation* arg_computation(Op& op, Type type, bool largest, bool last) {
  hlo::Computation* pick = op.b.module()->add_computation(largest ? "arg_max" : "arg_min");
  hlo::Builder b(pick);
  Instr* x = b.parameter(0, Shape::scalar(type), "x");
  Instr* i = b.parameter(1, Shape::scalar(Type::s64), "i");
  Instr* y = b.parameter(2, Shape::scalar(type), "y");
  Instr* j = b.parameter(3, Shape::scalar(Type::s64), "j");
  Instr* wins = b.compare(largest ? Direction::gt : Direction::lt, x, y);
  Instr* equal = b.compare(Direction::eq, x, y);
  if (tensor::is_float(type)) {
    Instr* x_is_nan = b.compare(Direction::ne, x, x);
    Instr* y_is_nan = b.compare(Direction::ne, y, y);
    wins = b.binary(Opcode::or_, wins,
                    b.binary(Opcode::and_, x_is_nan, b.unary(Opcode::not_, y_is_nan)));
    equal = b.binary(Opcode::or_, equal, b.binary(Opcode::and_, x_is_nan, y_is_nan));
  }
  Instr* before = b.compare(last ? Direction::gt : Direction::lt, i, j);
  Instr* takes_x = b.binary(Opcode::or_, wins, b.binary(Opcode::and_, equal, before));
  pick->set_root(b.tuple({b.select(wins, x, y), b.select(takes_x, i, j)}));
  return pick;
}

// Positions of the maxima (minima) along an axis, which is removed.
Instr* arg_positions(Op& op, Instr* x, int64_t axis, bool largest, bool last) {
  const Type type = x->shape().type();
  if (x->shape().dim(axis) == 0)
    op.fail("input is {}: an empty array has no largest element", to_string(x->shape()));
  Instr* positions = iota(op, Type::s64, x->shape().extents(), axis);
  Literal nowhere(Shape::scalar(Type::s64));
  nowhere.set_s64(0, last ? -1 : INT64_MAX);
  Instr* start =
      op.b.constant(hlo::neutral_value(largest ? Opcode::maximum : Opcode::minimum, type));
  Instr* both = op.b.reduce({x, positions}, {start, op.b.constant(nowhere)}, {axis},
                            arg_computation(op, type, largest, last));
  return op.b.get_tuple_element(both, 1);
}

// One at the maximum, zero elsewhere. Before opset 13 all dimensions from the axis on count as one.
Outputs hardmax(Op& op) {
  op.check_float(0);
  const Ints extents = op.shape(0).extents();
  const int64_t rank = op.rank(0);
  int64_t axis = op.axis_attr(op.opset() >= 13 ? -1 : 1, rank);
  Ints flat = extents;
  if (op.opset() < 13) {
    flat = {product(extents, 0, axis), product(extents, axis)};
    axis = 1;
  }
  if (op.shape(0).elems() == 0) return {op.in(0)};
  Instr* x = reshape(op, op.in(0), flat);
  Instr* at = arg_positions(op, x, axis, true, false);
  Instr* hot = op.b.compare(Direction::eq, broadcast_back(op, at, flat, {axis}),
                            iota(op, Type::s64, flat, axis));
  return {reshape(op, op.b.convert(hot, op.type(0)), extents)};
}

template <bool largest>
Outputs arg(Op& op) {
  const int64_t axis = op.axis_attr(0, op.rank(0));
  const bool keep = op.int_attr("keepdims", 1) != 0;
  const bool last = op.int_attr("select_last_index", 0) != 0;
  Instr* result = arg_positions(op, op.in(0), axis, largest, last);
  return {keep ? reshape(op, result, keeping(op.shape(0).extents(), {axis})) : result};
}

constexpr OpEntry kOps[] = {
    {"ArgMax", 1, 1, arg<true>},
    {"ArgMin", 1, 1, arg<false>},
    {"Hardmax", 1, 1, hardmax},
    {"ReduceL1", 1, 2, reduce_l1},
    {"ReduceL2", 1, 2, reduce_l2},
    {"ReduceLogSum", 1, 2, reduce_log_sum},
    {"ReduceLogSumExp", 1, 2, reduce_log_sum_exp},
    {"ReduceMax", 1, 2, plain<Opcode::maximum, Opcode::or_>},
    {"ReduceMean", 1, 2, reduce_mean},
    {"ReduceMin", 1, 2, plain<Opcode::minimum, Opcode::and_>},
    {"ReduceProd", 1, 2, plain<Opcode::multiply, Opcode::and_>},
    {"ReduceSum", 1, 2, reduce_sum},
    {"ReduceSumSquare", 1, 2, reduce_sum_square},
};

}  // namespace

std::span<const OpEntry> reduce_ops() { return kOps; }

}  // namespace heddle::import
