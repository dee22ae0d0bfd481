// Operators along one dimension in its order: running sums, sorting.
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// A window over everything up to (from, where `reverse`) each position.
hlo::Window running_window(int64_t rank, int64_t axis, int64_t extent, bool reverse) {
  hlo::Window window;
  window.dims.resize(static_cast<size_t>(rank));
  hlo::WindowDim& dim = window.dims[static_cast<size_t>(axis)];
  dim.size = extent;
  (reverse ? dim.pad_high : dim.pad_low) = extent - 1;
  return window;
}

// Moves the values one place along the axis, a zero coming in.
Instr* shift(Op& op, Instr* x, int64_t axis, bool reverse) {
  Ints low(static_cast<size_t>(x->shape().rank()), 0), high = low;
  const auto a = static_cast<size_t>(axis);
  low[a] = reverse ? -1 : 1;
  high[a] = reverse ? 1 : -1;
  return op.b.pad(x, op.b.scalar(x->shape().type(), 0), low, high, {});
}

Outputs cum_sum(Op& op) {
  const bool exclusive = op.int_attr("exclusive", 0) != 0;
  const bool reverse = op.int_attr("reverse", 0) != 0;
  const int64_t axis = op.axis(op.known_int(1, "axis"), op.rank(0));
  const int64_t extent = op.shape(0).dim(axis);
  Instr* x = op.in(0);
  if (extent == 0) return {x};
  const Type type = op.type(0);
  const hlo::Window window = running_window(op.rank(0), axis, extent, reverse);
  x = op.b.convert(x, compute_type(type));
  x = op.b.reduce_window(Opcode::add, x, op.b.scalar(compute_type(type), 0), window);
  x = op.b.convert(x, type);
  return {exclusive ? shift(op, x, axis, reverse) : x};
}

// {x, y, i, j} -> x before y. Positions play no part: the sort is stable.
hlo::Computation* order(Op& op, Type type, bool largest) {
  hlo::Computation* before = op.b.module()->add_computation("before");
  hlo::Builder b(before);
  Instr* x = b.parameter(0, Shape::scalar(type), "x");
  Instr* y = b.parameter(1, Shape::scalar(type), "y");
  b.parameter(2, Shape::scalar(Type::s64), "i");
  b.parameter(3, Shape::scalar(Type::s64), "j");
  before->set_root(b.compare(largest ? Direction::gt : Direction::lt, x, y));
  return before;
}

Outputs top_k(Op& op) {
  const int64_t axis = op.axis_attr(-1, op.rank(0));
  const bool largest = op.int_attr("largest", 1) != 0;
  op.ignore({"sorted"});  // sorted is a legal answer to "in any order"
  const int64_t k = op.opset() >= 10 ? op.known_int(1, "K") : op.int_attr("k", -1);
  const Ints extents = op.shape(0).extents();
  if (k < 0 || k > extents[static_cast<size_t>(axis)])
    op.fail("k is {} for a dimension of {}", k, extents[static_cast<size_t>(axis)]);
  Instr* positions = iota(op, Type::s64, extents, axis);
  Instr* both = op.b.sort({op.in(0), positions}, axis, true, order(op, op.type(0), largest));
  Ints limits = extents;
  limits[static_cast<size_t>(axis)] = k;
  const Ints starts(extents.size(), 0);
  return {op.b.slice(op.b.get_tuple_element(both, 0), starts, limits, {}),
          op.b.slice(op.b.get_tuple_element(both, 1), starts, limits, {})};
}

constexpr OpEntry kOps[] = {
    {"CumSum", 2, 2, cum_sum},
    {"TopK", 1, 2, top_k},
};

}  // namespace

std::span<const OpEntry> order_ops() { return kOps; }

}  // namespace heddle::import
