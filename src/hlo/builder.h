// Builder: appends instructions to a computation with their shapes inferred.
//
// Errors are deferred: the first failed inference is kept in status(), and from then on every call
// returns a poison constant (a scalar broadcast to f32[1,1,1,1,1,1,1,1]). Code that builds from
// user input must check status() before it uses a result; a pass, for which failure is a bug, calls
// check().
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::hlo {

class Builder {
 public:
  explicit Builder(Computation* computation) : computation_(computation) {}
  Computation* computation() const { return computation_; }
  Module* module() const { return computation_->module(); }
  const Status& status() const { return status_; }
  void check() const;  // aborts with the message: for passes
  // Prefix for the names of the instructions built next ("" for opcode names).
  void set_name(std::string_view name) { name_ = name; }

  // Any opcode: shape by infer_shape; `declared` for opcodes whose shape must be declared.
  Instr* make(Opcode opcode, std::vector<Instr*> operands, Attrs attrs = NoAttrs{},
              std::vector<Computation*> called = {}, const Shape* declared = nullptr);

  Instr* parameter(int64_t number, const Shape& shape, std::string_view name = {});
  Instr* constant(Literal value);
  Instr* scalar(Type type, double value);         // rank 0
  Instr* full(const Shape& shape, double value);  // broadcast of a scalar
  Instr* unary(Opcode opcode, Instr* x);
  Instr* binary(Opcode opcode, Instr* a, Instr* b);  // equal extents
  // Numpy broadcasting of both sides first (right-aligned; extents 1 stretch).
  Instr* binary_broadcast(Opcode opcode, Instr* a, Instr* b);
  Instr* compare(Direction direction, Instr* a, Instr* b);
  Instr* compare_broadcast(Direction direction, Instr* a, Instr* b);
  Instr* select(Instr* predicate, Instr* on_true, Instr* on_false);
  Instr* clamp(Instr* low, Instr* x, Instr* high);
  Instr* convert(Instr* x, Type type);  // x unchanged if the type is equal
  Instr* bitcast_convert(Instr* x, const Shape& shape);

  Instr* broadcast(Instr* x, const std::vector<int64_t>& extents, const Ints& dimensions);
  Instr* broadcast_to(Instr* x, const std::vector<int64_t>& extents);  // numpy rule
  Instr* reshape(Instr* x, const std::vector<int64_t>& extents);
  Instr* transpose(Instr* x, const Ints& permutation);
  // Empty strides mean ones, an empty interior means zeros.
  Instr* slice(Instr* x, const Ints& starts, const Ints& limits, const Ints& strides);
  Instr* pad(Instr* x, Instr* value, const Ints& low, const Ints& high, const Ints& interior);
  Instr* concatenate(const std::vector<Instr*>& parts, int64_t dimension);
  Instr* reverse(Instr* x, const Ints& dimensions);
  Instr* iota(const Shape& shape, int64_t dimension);
  Instr* gather(Instr* x, Instr* indices, GatherAttrs attrs);
  // x[indices, …] along `axis`, as in ONNX Gather and numpy take: indices of any rank; values must
  // be in range (the caller has wrapped negative ones).
  Instr* take(Instr* x, Instr* indices, int64_t axis);
  Instr* dynamic_slice(Instr* x, const std::vector<Instr*>& starts, const Ints& sizes);
  Instr* dynamic_update_slice(Instr* x, Instr* update, const std::vector<Instr*>& starts);

  // reduce with a binary opcode (add, multiply, maximum, minimum, and, or), starting from its
  // neutral value.
  Instr* reduce(Opcode opcode, Instr* x, const Ints& dimensions);
  Instr* reduce(const std::vector<Instr*>& operands, const std::vector<Instr*>& inits,
                const Ints& dimensions, Computation* to_apply);
  Instr* reduce_window(Opcode opcode, Instr* x, Instr* init, const Window& window);
  Instr* dot(Instr* a, Instr* b, DotAttrs attrs);
  // numpy matmul of ranks >= 2: batch dimensions broadcast.
  Instr* matmul(Instr* a, Instr* b);
  Instr* convolution(Instr* x, Instr* kernel, ConvolutionAttrs attrs);
  Instr* sort(const std::vector<Instr*>& operands, int64_t dimension, bool stable,
              Computation* compare);

  Instr* tuple(const std::vector<Instr*>& elements);
  Instr* get_tuple_element(Instr* x, int64_t index);
  Instr* call(Computation* computation, const std::vector<Instr*>& operands);
  Instr* while_loop(Computation* condition, Computation* body, Instr* init);
  Instr* conditional(Instr* predicate, Instr* true_operand, Computation* on_true,
                     Instr* false_operand, Computation* on_false);

  // A computation of two scalars {opcode(a, b)}; made once per module, opcode and type.
  Computation* scalar_computation(Opcode opcode, Type type);

 private:
  Instr* poison();
  Instr* fail(Error error);
  // Broadcasts x to `dims`; x is right-aligned with them, as in numpy.
  Instr* stretch(Instr* x, const std::vector<tensor::Dim>& dims);
  Instr* add_broadcast(Instr* x, std::vector<tensor::Dim> dims, const Ints& dimensions);
  Instr* add_reshape(Instr* x, std::vector<tensor::Dim> dims);
  Computation* computation_;
  Status status_;
  std::string name_;
  Instr* poison_ = nullptr;
};

// The neutral value of a reduction by `opcode`: 0, 1, -inf, inf, true, false.
Literal neutral_value(Opcode opcode, Type type);

}  // namespace heddle::hlo
