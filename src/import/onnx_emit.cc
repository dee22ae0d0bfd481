#include "import/onnx_emit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heddle::import {

Type compute_type(Type type) { return type == Type::f16 || type == Type::bf16 ? Type::f32 : type; }

const Literal* constant_of(const Instr* x) {
  return x->is(Opcode::constant) ? &x->literal() : nullptr;
}

// The scalar that a value broadcasts, or null.
Instr* repeated_scalar(Instr* x) {
  return x->is(Opcode::broadcast) && x->operand(0)->shape().is_scalar() ? x->operand(0) : nullptr;
}

Instr* reshape(Op& op, Instr* x, const Ints& extents) {
  while (x->is(Opcode::reshape)) x = x->operand(0);
  if (x->shape().extents() == extents) return x;
  if (Instr* scalar = repeated_scalar(x)) return splat(op, scalar, extents);
  if (const Literal* literal = constant_of(x); literal && product(extents) == literal->elems())
    return op.b.constant(reshaped(*literal, extents));
  return op.b.reshape(x, extents);
}

Instr* broadcast_to(Op& op, Instr* x, const Ints& extents) {
  const Ints from = x->shape().extents();
  if (from == extents) return x;
  op.check_extents(extents);
  const auto rank = static_cast<int64_t>(extents.size());
  const int64_t offset = rank - static_cast<int64_t>(from.size());
  if (offset < 0)
    op.fail("[{}] does not broadcast to [{}]", fmt::join(from, ","), fmt::join(extents, ","));
  Ints kept, dims;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t to = extents[i + static_cast<size_t>(offset)];
    if (from[i] == 1 && to != 1) continue;
    if (from[i] != to)
      op.fail("[{}] does not broadcast to [{}]", fmt::join(from, ","), fmt::join(extents, ","));
    kept.push_back(from[i]);
    dims.push_back(static_cast<int64_t>(i) + offset);
  }
  if (Instr* scalar = repeated_scalar(x)) return splat(op, scalar, extents);
  return op.b.broadcast(reshape(op, x, kept), extents, dims);
}

Instr* broadcast_along(Op& op, Instr* x, const Ints& extents, int64_t dim) {
  const int64_t wanted = extents[static_cast<size_t>(dim)];
  if (x->shape().rank() != 1 || x->shape().dim(0) != wanted)
    op.fail("got {} where [{}] is wanted (a number for each entry of dimension {})",
            to_string(x->shape()), wanted, dim);
  return op.b.broadcast(x, extents, {dim});
}

Instr* splat(Op& op, Instr* scalar, const Ints& extents) {
  return extents.empty() ? scalar : op.b.broadcast(scalar, extents, {});
}

Ints common_extents(Op& op, const Ints& a, const Ints& b) {
  const size_t rank = std::max(a.size(), b.size());
  Ints result(rank);
  for (size_t i = 0; i < rank; ++i) {  // from the right
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      op.fail_shape("shapes [{}] and [{}] do not broadcast together", fmt::join(a, ","),
                    fmt::join(b, ","));
    result[rank - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Instr* binary(Op& op, Opcode opcode, Instr* x, Instr* y) {
  const Ints extents = common_extents(op, x->shape().extents(), y->shape().extents());
  return op.b.binary(opcode, broadcast_to(op, x, extents), broadcast_to(op, y, extents));
}

Instr* binary_number(Op& op, Opcode opcode, Instr* x, double y) {
  return binary(op, opcode, x, op.b.scalar(x->shape().type(), y));
}

Instr* compare(Op& op, Direction direction, Instr* x, Instr* y) {
  const Ints extents = common_extents(op, x->shape().extents(), y->shape().extents());
  return op.b.compare(direction, broadcast_to(op, x, extents), broadcast_to(op, y, extents));
}

Instr* compare_number(Op& op, Direction direction, Instr* x, double y) {
  return compare(op, direction, x, op.b.scalar(x->shape().type(), y));
}

Instr* select(Op& op, Instr* predicate, Instr* on_true, Instr* on_false) {
  const Ints values = common_extents(op, on_true->shape().extents(), on_false->shape().extents());
  const Ints extents = common_extents(op, values, predicate->shape().extents());
  return op.b.select(broadcast_to(op, predicate, extents), broadcast_to(op, on_true, extents),
                     broadcast_to(op, on_false, extents));
}

Instr* iota(Op& op, Type type, const Ints& extents, int64_t dim) {
  return op.b.iota(Shape::array(type, extents), dim);
}

Instr* tanh_of_gelu(Op& op, Instr* x) {
  Instr* cube = op.b.binary(Opcode::multiply, op.b.binary(Opcode::multiply, x, x), x);
  Instr* sum = op.b.binary(Opcode::add, x, binary(op, Opcode::multiply, cube, 0.044715));
  return op.b.unary(Opcode::tanh, binary(op, Opcode::multiply, sum, std::sqrt(2 / M_PI)));
}

Instr* gelu_of(Op& op, Instr* x, Instr* inner) {
  Instr* half = binary(op, Opcode::multiply, x, 0.5);
  return op.b.binary(Opcode::multiply, half, binary(op, Opcode::add, inner, 1));
}

Instr* from_the_beginning(Op& op, Instr* positions, int64_t extent) {
  Instr* moved = binary(op, Opcode::add, positions, static_cast<double>(extent));
  return op.b.select(compare(op, Direction::lt, positions, 0), moved, positions);
}

Instr* extent_of(Op& op, Instr* x, int64_t dim, Type type) {
  if (!op.is_bounded(x, dim)) return op.b.scalar(type, static_cast<double>(x->shape().dim(dim)));
  return op.b.convert(op.b.make(Opcode::get_dimension_size, {x}, hlo::DimensionAttrs{dim}), type);
}

Instr* mean(Op& op, Instr* x, const Ints& dims) {
  double count = 1;
  Instr* open = nullptr;  // elements along dimensions whose extents differ from run to run
  for (int64_t dim : dims) {
    if (!op.is_bounded(x, dim)) {
      count *= static_cast<double>(x->shape().dim(dim));
      continue;
    }
    Instr* extent = extent_of(op, x, dim, x->shape().type());
    open = open == nullptr ? extent : op.b.binary(Opcode::multiply, open, extent);
  }
  Instr* sum = op.b.reduce(Opcode::add, x, dims);
  if (open != nullptr) {
    if (count != 1) open = binary(op, Opcode::multiply, open, count);
    return op.b.binary(Opcode::divide, sum, op.b.broadcast(open, sum->shape().extents(), {}));
  }
  return binary(op, Opcode::divide, sum, count);
}

Instr* broadcast_back(Op& op, Instr* reduced, const Ints& extents, const Ints& dims) {
  Ints kept;
  for (int64_t i = 0; i < static_cast<int64_t>(extents.size()); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end()) kept.push_back(i);
  }
  return op.b.broadcast(reduced, extents, kept);
}

Ints without(const Ints& extents, const Ints& dims) {
  Ints result;
  for (int64_t i = 0; i < static_cast<int64_t>(extents.size()); ++i) {
    if (std::find(dims.begin(), dims.end(), i) == dims.end())
      result.push_back(extents[static_cast<size_t>(i)]);
  }
  return result;
}

Ints keeping(const Ints& extents, const Ints& dims) {
  Ints result = extents;
  for (int64_t dim : dims) result[static_cast<size_t>(dim)] = 1;
  return result;
}

Ints range(int64_t from, int64_t to) {
  Ints result(static_cast<size_t>(std::max<int64_t>(0, to - from)));
  std::iota(result.begin(), result.end(), from);
  return result;
}

int64_t product(const Ints& extents, int64_t from, int64_t to) {
  if (to < 0) to = static_cast<int64_t>(extents.size());
  int64_t result = 1;
  for (int64_t i = from; i < to; ++i) result *= extents[static_cast<size_t>(i)];
  return result;
}

Literal ints_literal(const Ints& values) {
  return Literal::from<int64_t>(Shape::array(Type::s64, {static_cast<int64_t>(values.size())}),
                                values);
}

std::pair<Instr*, int64_t> part_of(Instr* list, int64_t k) {
  while (list->is(Opcode::concatenate)) {
    Instr* of = nullptr;
    for (Instr* part : list->operands()) {
      const int64_t elems = part->shape().elems();
      if (k < elems) {
        of = part;
        break;
      }
      k -= elems;
    }
    list = of;
  }
  return {list, k};
}

}  // namespace heddle::import
