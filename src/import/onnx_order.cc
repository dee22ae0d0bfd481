// Operators that depend on the order along one dimension: running sums, sorting.
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// A window over the `size` positions up to (from, where `reverse`) each position.
hlo::Window running_window(int64_t rank, int64_t axis, int64_t size, bool reverse) {
  hlo::Window window;
  window.dims.resize(static_cast<size_t>(rank));
  hlo::WindowDim& dim = window.dims[static_cast<size_t>(axis)];
  dim.size = size;
  (reverse ? dim.pad_high : dim.pad_low) = size - 1;
  return window;
}

// Shifts the values by one position along the axis, inserting a neutral one.
Instr* shift(Op& op, Instr* x, int64_t axis, bool reverse, double neutral) {
  Ints low(static_cast<size_t>(x->shape().rank()), 0), high = low;
  const auto a = static_cast<size_t>(axis);
  low[a] = reverse ? -1 : 1;
  high[a] = reverse ? 1 : -1;
  return op.b.pad(x, op.b.scalar(x->shape().type(), neutral), low, high, {});
}

// x with the dimension padded at its end.
Instr* fill_up(Op& op, Instr* x, int64_t axis, int64_t extent, double with) {
  Ints low(static_cast<size_t>(x->shape().rank()), 0), high = low;
  high[static_cast<size_t>(axis)] = extent - x->shape().dim(axis);
  return op.b.pad(x, op.b.scalar(x->shape().type(), with), low, high, {});
}

}  // namespace

// Running results along an axis. A window over all of it would take quadratic work, so long axes
// are split into blocks: a running result in each block, and one over the blocks' results. (The
// number of blocks depends on the extent.)
Instr* running(Op& op, Opcode opcode, Instr* x, int64_t axis, bool reverse) {
  constexpr int64_t kBlock = 16;
  const double neutral = opcode == Opcode::add ? 0 : 1;
  const Ints extents = x->shape().extents();
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t extent = extents[static_cast<size_t>(axis)];
  Instr* start = op.b.scalar(x->shape().type(), neutral);
  if (extent <= 2 * kBlock || op.limits().same_for_all_extents || op.is_counted(x, axis))
    return op.b.reduce_window(opcode, x, start, running_window(rank, axis, extent, reverse));
  const int64_t blocks = (extent + kBlock - 1) / kBlock;
  Ints apart = extents;
  apart[static_cast<size_t>(axis)] = blocks;
  apart.insert(apart.begin() + axis + 1, kBlock);
  op.check_extents(apart);
  x = reshape(op, fill_up(op, x, axis, blocks * kBlock, neutral), apart);
  Instr* inside =
      op.b.reduce_window(opcode, x, start, running_window(rank + 1, axis + 1, kBlock, reverse));
  Instr* before = running(op, opcode, op.b.reduce(opcode, x, {axis + 1}), axis, reverse);
  before = shift(op, before, axis, reverse, neutral);
  Ints dims = range(0, rank);
  for (int64_t& dim : dims) dim += dim > axis ? 1 : 0;
  x = op.b.binary(opcode, inside, op.b.broadcast(before, apart, dims));
  Ints merged = extents;
  merged[static_cast<size_t>(axis)] = blocks * kBlock;
  x = reshape(op, x, merged);
  return merged == extents ? x : op.b.slice(x, Ints(extents.size(), 0), extents, {});
}

namespace {

template <Opcode opcode>
Outputs cumulative(Op& op) {
  const bool exclusive = op.int_attr("exclusive", 0) != 0;
  const bool reverse = op.int_attr("reverse", 0) != 0;
  const int64_t axis = op.axis(op.known_int(1, "axis"), op.rank(0));
  Instr* x = op.in(0);
  if (op.shape(0).dim(axis) == 0) return {x};
  const Type type = op.type(0);
  x = running(op, opcode, op.b.convert(x, compute_type(type)), axis, reverse);
  x = op.b.convert(x, type);
  return {exclusive ? shift(op, x, axis, reverse, opcode == Opcode::add ? 0 : 1) : x};
}

// {x, y, i, j} -> x before y. Positions are ignored: the sort is stable.
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
  Instr* open = op.opset() >= 10 ? op.open_extent(1, 0) : nullptr;
  const auto first = [&](int64_t of) {
    Instr* sorted = op.b.get_tuple_element(both, of);
    return open ? op.open_part(sorted, axis, op.b.scalar(Type::s64, 0), k, open)
                : op.first_part(sorted, axis, k);
  };
  return {first(0), first(1)};
}

constexpr OpEntry kOps[] = {
    {"CumProd", 2, 2, cumulative<Opcode::multiply>},
    {"CumSum", 2, 2, cumulative<Opcode::add>},
    {"TopK", 1, 2, top_k},
};

}  // namespace

std::span<const OpEntry> order_ops() { return kOps; }

}  // namespace heddle::import
