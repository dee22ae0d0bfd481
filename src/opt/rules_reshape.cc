#include <algorithm>

#include "opt/rules.h"

namespace heddle::opt::rules {

Instr* reshape_same(Instr* x, Builder&) {
  return x->shape().dims() == x->operand(0)->shape().dims() ? x->operand(0) : nullptr;
}

Instr* reshape_reshape(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::reshape) || !are_static_arrays(y) || !is_static_array(x)) return nullptr;
  return b.reshape(y->operand(0), x->shape().extents());
}

Instr* reshape_broadcast(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::broadcast) || !are_static_arrays(x)) return nullptr;
  return reshape_cheaply(y, x->shape().extents(), b, /*build=*/true);
}

Instr* reshape_iota(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::iota) || !are_static_arrays(x)) return nullptr;
  return reshape_cheaply(y, x->shape().extents(), b, /*build=*/true);
}

Instr* reshape_constant(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!constant_of(y) || !is_static_array(x)) return nullptr;
  return reshape_cheaply(y, x->shape().extents(), b, /*build=*/true);
}

Instr* transpose_same(Instr* x, Builder& b) {
  if (is_counting(x->dimensions())) return x->operand(0);
  if (!are_static_arrays(x)) return nullptr;
  Ints moved;  // the operand's dimensions of extent > 1, in their new order
  for (int64_t d : x->dimensions())
    if (x->operand(0)->shape().dim(d) != 1) moved.push_back(d);
  return is_ascending(moved) ? b.reshape(x->operand(0), x->shape().extents()) : nullptr;
}

Instr* transpose_transpose(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::transpose)) return nullptr;
  return b.transpose(y->operand(0), permuted(y->dimensions(), x->dimensions()));
}

Instr* transpose_broadcast(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::broadcast)) return nullptr;
  return transpose_cheaply(y, x->dimensions(), b, /*build=*/true);
}

Instr* transpose_iota(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::iota)) return nullptr;
  return transpose_cheaply(y, x->dimensions(), b, /*build=*/true);
}

// Only dimensions with more than one element that are not repeated need reversing.
Instr* reverse_ones(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!are_static_arrays(x)) return nullptr;
  Ints varying;
  for (int64_t d : x->dimensions()) {
    const bool repeats = y->is(Opcode::broadcast) && !contains(y->dimensions(), d);
    if (x->shape().dim(d) > 1 && !repeats) varying.push_back(d);
  }
  if (varying.empty()) return y;
  return varying.size() < x->dimensions().size() ? b.reverse(y, varying) : nullptr;
}

Instr* reverse_reverse(Instr* x, Builder& b) {
  Instr* y = x->operand(0);
  if (!y->is(Opcode::reverse)) return nullptr;
  Ints once;  // reversed by only one of them
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (contains(x->dimensions(), d) != contains(y->dimensions(), d)) once.push_back(d);
  return once.empty() ? y->operand(0) : b.reverse(y->operand(0), once);
}

}  // namespace heddle::opt::rules
