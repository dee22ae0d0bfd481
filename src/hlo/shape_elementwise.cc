// Shapes of elementwise operators and of conversions.
#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

// Element types that an operator of one or two operands accepts.
int accepted_types(Opcode opcode) {
  switch (opcode) {
    case Opcode::ceil:
    case Opcode::floor:
    case Opcode::round_nearest_afz:
    case Opcode::round_nearest_even:
    case Opcode::erf:
    case Opcode::is_finite:
    case Opcode::reduce_precision:
    case Opcode::complex:
      return kFloat;
    case Opcode::abs:
    case Opcode::sign:
      return kSigned | kFloat | kComplex;
    case Opcode::negate:
    case Opcode::subtract:
    case Opcode::divide:
    case Opcode::power:
      return kNumber;
    case Opcode::remainder:
      return kInteger | kFloat;
    case Opcode::add:       // of pred: or
    case Opcode::multiply:  // of pred: and
    case Opcode::maximum:
    case Opcode::minimum:
      return kAnyType;
    case Opcode::not_:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
      return kInteger | kPred;
    case Opcode::count_leading_zeros:
    case Opcode::popcnt:
    case Opcode::mulhi:
    case Opcode::shift_left:
    case Opcode::shift_right_arithmetic:
    case Opcode::shift_right_logical:
      return kInteger;
    default:  // the transcendental functions, real, imag, atan2
      return kFloat | kComplex;
  }
}

// Dimensions common to all operands; types are not compared.
Result<Shape> common_dims(const ShapeQuery& q) {
  Shape result(q.operand(0).type(), q.operand(0).dims());
  for (size_t i = 1; i < q.count(); ++i) {
    const Shape& other = q.operand(i);
    if (other.rank() != result.rank())
      return shape_error(q, "ranks of {} and {} differ (operands 0 and {}); broadcast first",
                         text(q.operand(0)), text(other), i);
    for (int64_t d = 0; d < result.rank(); ++d) {
      const Dim &a = result.dims()[d], &b = other.dims()[d];
      if (!agree(a, b))
        return shape_error(q, "dims {} and {} differ (operand {} axis {})", text(a), text(b), i, d);
      result.set_dim(d, merged(a, b));
    }
  }
  return result;
}

Status want_numeric_conversion(const ShapeQuery& q, Type from, Type to) {
  if (tensor::is_complex(from) && !tensor::is_complex(to))
    return shape_error(q, "{} does not convert to {}; take real or imag first",
                       tensor::type_name(from), tensor::type_name(to));
  return {};
}

}  // namespace

Result<Shape> unary_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, accepted_types(q.opcode)));
  Shape result(q.operand(0).type(), q.operand(0).dims());
  switch (q.opcode) {
    case Opcode::is_finite:
      result.set_type(Type::pred);
      break;
    case Opcode::abs:
    case Opcode::real:
    case Opcode::imag:
      if (tensor::is_complex(result.type()))
        result.set_type(tensor::complex_component(result.type()));
      break;
    case Opcode::reduce_precision: {
      const auto& a = q.attrs_as<ReducePrecisionAttrs>();
      if (a.exponent_bits < 1 || a.mantissa_bits < 0)
        return shape_error(q, "exponent_bits {} must be at least 1, mantissa_bits {} at least 0",
                           a.exponent_bits, a.mantissa_bits);
      break;
    }
    default:
      break;
  }
  return result;
}

Result<Shape> binary_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, accepted_types(q.opcode)));
  HEDDLE_RETURN_IF_ERROR(want_array(q, 1));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  HEDDLE_ASSIGN_OR_RETURN(Shape result, common_dims(q));
  if (q.opcode == Opcode::complex) {
    if (result.type() != Type::f32 && result.type() != Type::f64)
      return shape_error(q, "operand 0 is {}, wanted f32 or f64", text(q.operand(0)));
    result.set_type(result.type() == Type::f32 ? Type::c64 : Type::c128);
  }
  return result;
}

Result<Shape> compare_shape(const ShapeQuery& q) {
  const auto& a = q.attrs_as<CompareAttrs>();
  int accepted = kAnyType;
  switch (a.type) {
    case CompareType::by_type:
      break;
    case CompareType::floating:
      accepted = kFloat | kComplex;
      break;
    case CompareType::total_order:
      accepted = kFloat;
      break;
    case CompareType::is_signed:
      accepted = kSigned;
      break;
    case CompareType::is_unsigned:
      accepted = kUnsigned | kPred;
      break;
  }
  if (a.direction != Direction::eq && a.direction != Direction::ne) accepted &= ~kComplex;
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, accepted));
  HEDDLE_RETURN_IF_ERROR(want_array(q, 1));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  HEDDLE_ASSIGN_OR_RETURN(Shape result, common_dims(q));
  result.set_type(Type::pred);
  return result;
}

// The operands of `values` agree fully; the others may also be scalars.
static Result<Shape> with_scalars(const ShapeQuery& q, std::span<const size_t> values,
                                  std::span<const size_t> others) {
  Shape result(q.operand(values[0]).type(), q.operand(values[0]).dims());
  for (const auto& group : {values, others}) {
    for (size_t i : group) {
      const Shape& shape = q.operand(i);
      const bool is_value = group.data() == values.data();
      if (!is_value && shape.is_scalar()) continue;
      if (!same_dims(shape, result))
        return shape_error(q, "operand {} is {}, wanted {}the dimensions of {}", i, text(shape),
                           is_value ? "" : "a scalar or ", text(result));
      for (int64_t d = 0; d < result.rank(); ++d)
        result.set_dim(d, merged(result.dims()[d], shape.dims()[d]));
    }
  }
  return result;
}

Result<Shape> select_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, kPred));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 2, 1));
  const size_t values[] = {1, 2}, others[] = {0};
  return with_scalars(q, values, others);
}

Result<Shape> clamp_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_RETURN_IF_ERROR(want_type(q, 1, kAnyType & ~kComplex));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 0, 1));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 2, 1));
  const size_t values[] = {1}, others[] = {0, 2};
  return with_scalars(q, values, others);
}

Result<Shape> map_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_ASSIGN_OR_RETURN(Shape result, common_dims(q));
  const Ints& dims = q.attrs_as<DimensionsAttrs>().dimensions;
  bool all = static_cast<int64_t>(dims.size()) == result.rank();
  for (size_t i = 0; all && i < dims.size(); ++i) all = dims[i] == static_cast<int64_t>(i);
  if (!all)
    return shape_error(q, "dimensions={} must list all {} dimensions in order", text(dims),
                       result.rank());
  result.set_type(q.called[0]->root()->shape().type());
  return result;
}

Result<Shape> convert_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  HEDDLE_RETURN_IF_ERROR(want_numeric_conversion(q, q.operand(0).type(), q.declared->type()));
  return Shape(q.declared->type(), q.operand(0).dims());
}

Result<Shape> stochastic_convert_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, kFloat));
  HEDDLE_RETURN_IF_ERROR(want_type(q, 1, kUnsigned));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  const int wanted = tensor::type_bits(q.operand(0).type());
  if (tensor::type_bits(q.operand(1).type()) != wanted)
    return shape_error(q, "operand 1 is {}, wanted {} random bits", text(q.operand(1)), wanted);
  HEDDLE_ASSIGN_OR_RETURN(Shape result, common_dims(q));
  HEDDLE_RETURN_IF_ERROR(want_numeric_conversion(q, result.type(), q.declared->type()));
  result.set_type(q.declared->type());
  return result;
}

// Between element widths the innermost dimension holds the parts: u32[4] <-> u8[4,4].
Result<Shape> bitcast_convert_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  const Type from = q.operand(0).type(), to = q.declared->type();
  if (tensor::is_complex(from) != tensor::is_complex(to))
    return shape_error(q, "{} and {}: complex values only become complex ones",
                       tensor::type_name(from), tensor::type_name(to));
  // Bits in memory: pred occupies a byte.
  auto width = [](Type type) { return type == Type::pred ? 8 : tensor::type_bits(type); };
  const int from_bits = width(from), to_bits = width(to);
  std::vector<Dim> dims = q.operand(0).dims();
  if (from_bits > to_bits) {
    if (from_bits % to_bits != 0)
      return shape_error(q, "{} bits do not divide into {}", from_bits, to_bits);
    dims.emplace_back(from_bits / to_bits);
  } else if (from_bits < to_bits) {
    const int64_t parts = to_bits / from_bits;
    if (to_bits % from_bits != 0 || dims.empty() || !agree(dims.back(), Dim(parts)))
      return shape_error(q, "operand 0 is {}, wanted a last dimension of {} to make {}",
                         text(q.operand(0)), parts, tensor::type_name(to));
    dims.pop_back();
  }
  return Shape(to, std::move(dims));
}

}  // namespace heddle::hlo
