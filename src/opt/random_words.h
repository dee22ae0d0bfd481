// Private to opt: arithmetic on arrays of random words. An element depends on its index alone, so
// that fusion does not change the numbers (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011).
#pragma once

#include "hlo/builder.h"
#include "opt/match.h"

namespace heddle::opt {

// Arrays of one shape, or scalars that broadcast to it.
class RandomWords {
 public:
  RandomWords(hlo::Builder& b, Ints extents) : b_(b), extents_(std::move(extents)) {}

  Instr* number(Type type, uint64_t value) {  // u32 or u64
    Literal literal(Shape::scalar(type));
    if (type == Type::u64)
      literal.mutable_values<uint64_t>()[0] = value;
    else
      literal.mutable_values<uint32_t>()[0] = static_cast<uint32_t>(value);
    return b_.constant(std::move(literal));
  }
  Instr* op(Opcode opcode, Instr* x, Instr* y) {
    if (x->shape().rank() != y->shape().rank()) {
      x = full(x);
      y = full(y);
    }
    return b_.binary(opcode, x, y);
  }
  Instr* op(Opcode opcode, Instr* x, uint64_t number_) {
    return op(opcode, x, number(x->shape().type(), number_));
  }
  Instr* full(Instr* x) {
    return x->shape().rank() == 0 && !extents_.empty() ? b_.broadcast(x, extents_, {}) : x;
  }
  // Row-major number of the element, u64.
  Instr* position() {
    int64_t elems = 1;
    for (int64_t extent : extents_) elems *= extent;
    return b_.reshape(b_.iota(Shape::array(Type::u64, {elems}), 0), extents_);
  }

 protected:
  hlo::Builder& b_;
  const Ints extents_;
};

}  // namespace heddle::opt
