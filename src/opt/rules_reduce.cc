#include <algorithm>

#include "hlo/combiner.h"
#include "opt/rules.h"

namespace heddle::opt::rules {
namespace {

// Reduces one array, from one start value.
bool is_single(const Instr* reduce) {
  return reduce->operands().size() == 2 && are_static_arrays(reduce) && !reduce->shape().is_tuple();
}

// Whether any order gives the same result; sums of floats depend on it.
bool any_order(const Instr* reduce) {
  const std::optional<Opcode> combiner = hlo::combiner_of(*reduce->called()[0]);
  if (!combiner) return false;
  return *combiner == Opcode::maximum || *combiner == Opcode::minimum || is_integer(reduce) ||
         is_pred(reduce);
}

Instr* reduce_again(Instr* reduce, Instr* operand, const Ints& dimensions, Builder& b) {
  return b.reduce({operand}, {reduce->operand(1)}, dimensions, reduce->called()[0]);
}

}  // namespace

Instr* reduce_nothing(Instr* x, Builder& b) {
  if (!is_single(x)) return nullptr;
  Instr* y = x->operand(0);
  if (y->shape().elems() == 0 && x->shape().elems() != 0)
    return broadcast_scalar(x->operand(1), x->shape().extents(), b);
  const std::optional<Opcode> combiner = hlo::combiner_of(*x->called()[0]);
  if (!combiner || y->shape().elems() != x->shape().elems() || x->shape().elems() == 0)
    return nullptr;
  if (y->shape().type() != x->shape().type()) return nullptr;
  Instr* start = broadcast_scalar(x->operand(1), x->shape().extents(), b);
  Instr* element = y->shape().rank() == x->shape().rank() ? y : b.reshape(y, x->shape().extents());
  return b.binary(*combiner, start, element);
}

Instr* reduce_transpose(Instr* x, Builder& b) {
  if (!is_single(x) || !x->operand(0)->is(Opcode::transpose)) return nullptr;
  Instr* y = x->operand(0);
  Ints reduced, kept;  // dimensions of the transpose's operand, in the transpose's order
  for (int64_t d = 0; d < y->shape().rank(); ++d)
    (contains(x->dimensions(), d) ? reduced : kept)
        .push_back(y->dimensions()[static_cast<size_t>(d)]);
  if (!is_ascending(reduced) && !any_order(x)) return nullptr;
  std::sort(reduced.begin(), reduced.end());
  Instr* result = reduce_again(x, y->operand(0), reduced, b);
  if (is_ascending(kept)) return result;
  Ints sorted = kept, order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t d : kept)
    order.push_back(std::find(sorted.begin(), sorted.end(), d) - sorted.begin());
  return b.transpose(result, order);
}

// Each piece of the reshape must be reduced or kept as a whole; then no element changes its order.
Instr* reduce_reshape(Instr* x, Builder& b) {
  if (!is_single(x) || !x->operand(0)->is(Opcode::reshape) || x->operand(0)->shape().elems() == 0)
    return nullptr;
  Instr* y = x->operand(0)->operand(0);
  const Ints from = y->shape().extents(), to = x->operand(0)->shape().extents();
  Ints reduced;
  bool reduces_much = false;
  for (const ReshapePiece& piece : reshape_pieces(from, to)) {
    bool keeps = false, reduces = false;
    for (int64_t d = piece.to_begin; d < piece.to_end; ++d) {
      if (to[static_cast<size_t>(d)] == 1) continue;
      (contains(x->dimensions(), d) ? reduces : keeps) = true;
    }
    if (keeps && reduces) return nullptr;
    for (int64_t d = piece.from_begin; reduces && d < piece.from_end; ++d) reduced.push_back(d);
    reduces_much = reduces_much || reduces;
  }
  if (!reduces_much) return nullptr;  // reduce_nothing's
  Instr* result = reduce_again(x, y, reduced, b);
  return result->shape().extents() == x->shape().extents()
             ? result
             : b.reshape(result, x->shape().extents());
}

Instr* dot_empty(Instr* x, Builder& b) {
  if (!are_static_arrays(x) || x->operands().size() != 2 || x->shape().elems() == 0) return nullptr;
  for (int64_t d : x->attrs_as<hlo::DotAttrs>().lhs_contracting_dims)
    if (x->operand(0)->shape().dim(d) == 0) return b.full(x->shape().without_layout(), 0);
  return nullptr;
}

}  // namespace heddle::opt::rules
