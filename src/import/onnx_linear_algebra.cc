// Determinants.
#include "import/onnx_emit.h"
#include "import/onnx_ops.h"

namespace heddle::import {
namespace {

// Column `at` of matrices [B,m,m] as [B,m].
Instr* column(Op& op, Instr* x, int64_t at) {
  const Ints e = x->shape().extents();
  return reshape(op, op.b.slice(x, {0, 0, at}, {e[0], e[1], at + 1}, {}), {e[0], e[1]});
}

Instr* row(Op& op, Instr* x, int64_t at) {
  const Ints e = x->shape().extents();
  return reshape(op, op.b.slice(x, {0, at, 0}, {e[0], at + 1, e[2]}, {}), {e[0], e[2]});
}

// 1 in the row of each matrix whose first element has the largest magnitude (the first such row).
Instr* pivot_of(Op& op, Instr* x) {
  const Ints e = x->shape().extents();
  Instr* size = op.b.unary(Opcode::abs, column(op, x, 0));
  Instr* most = broadcast_back(op, op.b.reduce(Opcode::maximum, size, {1}), {e[0], e[1]}, {1});
  Instr* places = iota(op, Type::s32, {e[0], e[1]}, 1);
  Instr* candidate = select(op, op.b.compare(Direction::eq, size, most), places,
                            op.b.scalar(Type::s32, static_cast<double>(e[1])));
  Instr* first = op.b.reduce(Opcode::minimum, candidate, {1});
  return op.b.convert(
      op.b.compare(Direction::eq, places, broadcast_back(op, first, {e[0], e[1]}, {1})),
      x->shape().type());
}

// Gaussian elimination with partial pivoting: the product of the pivots, negated for each exchange.
Outputs det(Op& op) {
  op.check_float(0);
  const Ints extents = op.shape(0).extents();
  constexpr int64_t kLargest = 64;  // steps are unrolled
  if (extents.size() < 2 || extents.back() != extents[extents.size() - 2] || extents.back() < 1 ||
      extents.back() > kLargest || op.shape(0).elems() == 0)
    op.fail("input is {}, wanted square matrices of at most {} rows", to_string(op.shape(0)),
            kLargest);
  const Ints batch(extents.begin(), extents.end() - 2);
  const int64_t count = product(batch), n = extents.back();
  const Type type = op.type(0), compute = compute_type(type);
  Instr* x = reshape(op, op.b.convert(op.in(0), compute), {count, n, n});
  Instr* result = op.b.full(Shape::array(compute, {count}), 1);
  Instr* zero = op.b.scalar(compute, 0);
  for (int64_t m = n; m > 0; --m) {
    const Ints whole{count, m, m};
    Instr* chosen = pivot_of(op, x);  // [B,m]
    Instr* weights = op.b.broadcast(chosen, whole, {0, 1});
    Instr* taken = select(op, compare(op, Direction::ne, weights, 0), x, zero);
    Instr* pivot_row = op.b.reduce(Opcode::add, taken, {1});  // [B,m]
    Instr* pivot = reshape(op, op.b.slice(pivot_row, {0, 0}, {count, 1}, {}), {count});
    Instr* is_first = compare(op, Direction::ne,
                              reshape(op, op.b.slice(chosen, {0, 0}, {count, 1}, {}), {count}), 0);
    result = op.b.binary(Opcode::multiply, result, pivot);
    result = op.b.select(is_first, result, op.b.unary(Opcode::negate, result));
    if (m == 1) break;
    // The first row moves to the pivot row's place, and every row below is reduced by the pivot
    // row.
    Instr* top = op.b.broadcast(row(op, x, 0), whole, {0, 2});
    x = op.b.select(compare(op, Direction::ne, weights, 0), top, x);
    Instr* below = op.b.slice(x, {0, 1, 0}, {count, m, m}, {});
    Instr* safe = select(op, compare(op, Direction::eq, pivot, 0), op.b.scalar(compute, 1), pivot);
    Instr* factor = op.b.binary(Opcode::divide, column(op, below, 0),
                                op.b.broadcast(safe, {count, m - 1}, {0}));
    const Ints rest{count, m - 1, m - 1};
    Instr* shared = op.b.slice(pivot_row, {0, 1}, {count, m}, {});
    Instr* lost = op.b.binary(Opcode::multiply, op.b.broadcast(factor, rest, {0, 1}),
                              op.b.broadcast(shared, rest, {0, 2}));
    x = op.b.binary(Opcode::subtract, op.b.slice(below, {0, 0, 1}, {count, m - 1, m}, {}), lost);
  }
  return {op.b.convert(reshape(op, result, batch), type)};
}

constexpr OpEntry kOps[] = {
    {"Det", 1, 1, det},
};

}  // namespace

std::span<const OpEntry> linear_algebra_ops() { return kOps; }

}  // namespace heddle::import
