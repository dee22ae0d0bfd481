// Shapes of control flow, tuples, parameters and constants, asynchronous pairs, tokens, random
// numbers and opaque operators.
#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

Status want_tuple(const ShapeQuery& q, size_t i, size_t least) {
  const Shape& x = q.operand(i);
  if (x.is_tuple() && x.elements().size() >= least) return {};
  return shape_error(q, "operand {} is {}, wanted a tuple of {} or more", i, text(x), least);
}

Status want_declared_tuple(const ShapeQuery& q, size_t least) {
  HEDDLE_RETURN_IF_ERROR(want_declared(q));
  if (q.declared->is_tuple() && q.declared->elements().size() >= least) return {};
  return shape_error(q, "declared {}, wanted a tuple of {} or more", text(*q.declared), least);
}

Status want_part(const ShapeQuery& q, size_t element, const Shape& wanted) {
  const Shape& part = q.declared->elements()[element];
  if (declared_fits(part, wanted)) return {};
  return shape_error(q, "declared {}, element {} must be {}", text(*q.declared), element,
                     text(wanted));
}

Status want_token(const ShapeQuery& q, size_t i) {
  if (q.operand(i).type() == Type::token) return {};
  return shape_error(q, "operand {} is {}, wanted a token", i, text(q.operand(i)));
}

}  // namespace

Result<Shape> declared_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_declared(q));
  return *q.declared;
}

Result<Shape> parameter_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_declared(q));
  if (q.attrs_as<ParameterAttrs>().number < 0)
    return shape_error(q, "number {} is negative", q.attrs_as<ParameterAttrs>().number);
  return *q.declared;
}

Result<Shape> constant_shape(const ShapeQuery& q) {
  return q.attrs_as<ConstantAttrs>().value.shape();
}

Result<Shape> tuple_shape(const ShapeQuery& q) {
  std::vector<Shape> elements;
  for (const Shape* operand : q.operands) elements.push_back(*operand);
  return Shape::make_tuple(std::move(elements));
}

Result<Shape> get_tuple_element_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_tuple(q, 0, 0));
  const int64_t index = q.attrs_as<TupleIndexAttrs>().index;
  const std::vector<Shape>& elements = q.operand(0).elements();
  if (index < 0 || index >= static_cast<int64_t>(elements.size()))
    return shape_error(q, "index {} of {}", index, text(q.operand(0)));
  return elements[index];
}

Result<Shape> called_result_shape(const ShapeQuery& q) {
  if (q.opcode == Opcode::while_) return q.operand(0);
  return q.called[0]->root()->shape();
}

Result<Shape> same_as_operand_shape(const ShapeQuery& q) {
  return q.opcode == Opcode::copy ? q.operand(0).without_layout() : q.operand(0);
}

// async-start: ((operands), result, context…); update passes it on, done takes the result out.
Result<Shape> async_shape(const ShapeQuery& q) {
  if (q.opcode == Opcode::async_start) {
    HEDDLE_RETURN_IF_ERROR(want_declared_tuple(q, 2));
    std::vector<Shape> operands;
    for (const Shape* operand : q.operands) operands.push_back(*operand);
    HEDDLE_RETURN_IF_ERROR(want_part(q, 0, Shape::make_tuple(std::move(operands))));
    HEDDLE_RETURN_IF_ERROR(want_part(q, 1, q.called[0]->root()->shape()));
    return *q.declared;
  }
  HEDDLE_RETURN_IF_ERROR(want_tuple(q, 0, 2));
  return q.opcode == Opcode::async_update ? q.operand(0) : q.operand(0).elements()[1];
}

// copy-start: (destination, source, context); copy-done takes the destination out.
Result<Shape> copy_async_shape(const ShapeQuery& q) {
  if (q.opcode == Opcode::copy_done) {
    HEDDLE_RETURN_IF_ERROR(want_tuple(q, 0, 2));
    return q.operand(0).elements()[0];
  }
  if (!q.declared) return Shape::make_tuple({q.operand(0), q.operand(0), Shape::scalar(Type::u32)});
  HEDDLE_RETURN_IF_ERROR(want_declared_tuple(q, 2));
  HEDDLE_RETURN_IF_ERROR(want_part(q, 0, q.operand(0)));
  HEDDLE_RETURN_IF_ERROR(want_part(q, 1, q.operand(0)));
  return *q.declared;
}

// after-all and outfeed give a token; add-dependency passes operand 0 on.
Result<Shape> token_shape(const ShapeQuery& q) {
  switch (q.opcode) {
    case Opcode::after_all:
      for (size_t i = 0; i < q.count(); ++i) HEDDLE_RETURN_IF_ERROR(want_token(q, i));
      return Shape::make_token();
    case Opcode::add_dependency:
      HEDDLE_RETURN_IF_ERROR(want_token(q, 1));
      return q.operand(0);
    case Opcode::outfeed:
      if (q.count() == 2) HEDDLE_RETURN_IF_ERROR(want_token(q, 1));
      return Shape::make_token();
    default:  // infeed: (data, token)
      if (q.count() == 1) HEDDLE_RETURN_IF_ERROR(want_token(q, 0));
      HEDDLE_RETURN_IF_ERROR(want_declared_tuple(q, 2));
      HEDDLE_RETURN_IF_ERROR(want_part(q, 1, Shape::make_token()));
      return *q.declared;
  }
}

Result<Shape> rng_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  HEDDLE_RETURN_IF_ERROR(want_scalar(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_scalar(q, 1));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  const int accepted = q.attrs_as<RngAttrs>().normal ? kFloat : kFloat | kInteger | kPred;
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, accepted));
  return Shape(q.operand(0).type(), q.declared->dims());
}

// rng-bit-generator: state -> (state, bits); rng-get-and-update-state: the state as declared.
Result<Shape> rng_bits_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_declared(q));
  if (q.opcode == Opcode::rng_get_and_update_state) return *q.declared;
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, kUnsigned));
  HEDDLE_RETURN_IF_ERROR(want_declared_tuple(q, 2));
  HEDDLE_RETURN_IF_ERROR(want_part(q, 0, q.operand(0)));
  const Shape& bits = q.declared->elements()[1];
  if (q.declared->elements().size() != 2 || !bits.is_array() || !in_set(bits.type(), kInteger))
    return shape_error(q, "declared {}, wanted the state and integers", text(*q.declared));
  return *q.declared;
}

}  // namespace heddle::hlo
