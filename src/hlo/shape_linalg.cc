// Shapes of batch norm, cholesky, triangular-solve and fft.
#include <algorithm>

#include "hlo/shape_rules.h"

namespace heddle::hlo {

// training: x, scale, offset -> (x, mean, variance); inference: x, scale, offset, mean, variance;
// grad: x, scale, mean, variance, gradient -> (x, scale, offset).
Result<Shape> batch_norm_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  const Shape& x = q.operand(0);
  const int64_t feature = q.attrs_as<BatchNormAttrs>().feature_index;
  HEDDLE_RETURN_IF_ERROR(want_dim(q, feature, x.rank(), "feature_index"));
  const bool grad = q.opcode == Opcode::batch_norm_grad;
  for (size_t i = 0; i < q.count(); ++i) {
    HEDDLE_RETURN_IF_ERROR(want_type(q, i, kFloat));
    const Shape& shape = q.operand(i);
    if (i == 0 || (grad && i == 4)) {
      if (!same_dims(shape, x))
        return shape_error(q, "operand {} is {}, wanted the dimensions of {}", i, text(shape),
                           text(x));
      continue;
    }
    HEDDLE_RETURN_IF_ERROR(want_rank(q, i, 1));
    if (!agree(shape.dims()[0], x.dims()[feature]))
      return shape_error(q, "dims {} and {} differ (operand {} axis 0, the feature axis is {})",
                         text(x.dims()[feature]), text(shape.dims()[0]), i, feature);
  }
  Shape result(x.type(), x.dims());
  if (q.opcode == Opcode::batch_norm_inference) return result;
  const Shape per_feature(q.operand(1).type(), {x.dims()[feature]});
  return Shape::make_tuple({result, per_feature, per_feature});
}

static Status want_square(const ShapeQuery& q, size_t i) {
  HEDDLE_RETURN_IF_ERROR(want_type(q, i, kFloat | kComplex));
  const Shape& x = q.operand(i);
  if (x.rank() < 2 || !agree(x.dims()[x.rank() - 1], x.dims()[x.rank() - 2]))
    return shape_error(q, "operand {} is {}, wanted square matrices", i, text(x));
  return {};
}

Result<Shape> cholesky_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_square(q, 0));
  return Shape(q.operand(0).type(), q.operand(0).dims());
}

Result<Shape> triangular_solve_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_square(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_array(q, 1));
  const Shape &a = q.operand(0), &b = q.operand(1);
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  HEDDLE_RETURN_IF_ERROR(want_rank(q, 1, a.rank()));
  const bool left = q.attrs_as<TriangularSolveAttrs>().left_side;
  for (int64_t d = 0; d < a.rank(); ++d) {
    const bool batch = d < a.rank() - 2;
    const int64_t solved = left ? a.rank() - 2 : a.rank() - 1;
    if ((batch || d == solved) && !agree(a.dims()[d], b.dims()[d]))
      return shape_error(q, "dims {} and {} differ (operand 1 axis {})", text(a.dims()[d]),
                         text(b.dims()[d]), d);
  }
  return Shape(b.type(), b.dims());
}

Result<Shape> fft_shape(const ShapeQuery& q) {
  const auto& a = q.attrs_as<FftAttrs>();
  const bool real_input = a.kind == FftAttrs::Kind::rfft;
  const bool real_output = a.kind == FftAttrs::Kind::irfft;
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, real_input ? kFloat : kComplex));
  const Shape& x = q.operand(0);
  const int64_t transformed = static_cast<int64_t>(a.fft_length.size());
  if (transformed < 1 || transformed > 3 || x.rank() < transformed)
    return shape_error(q, "fft_length={} for {}: 1 to 3 of its last dimensions", text(a.fft_length),
                       text(x));
  if (real_input && x.type() != Type::f32 && x.type() != Type::f64)
    return shape_error(q, "operand 0 is {}, wanted f32 or f64", text(x));
  Shape result(x.type(), x.dims());
  for (int64_t i = 0; i < transformed; ++i) {
    const int64_t axis = x.rank() - transformed + i, length = a.fft_length[i];
    const bool last = i + 1 == transformed;
    if (length < 0) return shape_error(q, "fft_length={} is negative", text(a.fft_length));
    // For a real signal only the first half of the spectrum is kept.
    const int64_t half = length == 0 ? 0 : length / 2 + 1;
    const int64_t wanted = last && real_output ? half : length;
    if (!agree(x.dims()[axis], Dim(wanted)))
      return shape_error(q, "dim {} must be {} for length {} (operand 0 axis {})",
                         text(x.dims()[axis]), wanted, length, axis);
    if (last && (real_input || real_output)) result.set_dim(axis, Dim(real_input ? half : length));
  }
  if (real_input) result.set_type(x.type() == Type::f32 ? Type::c64 : Type::c128);
  if (real_output) result.set_type(tensor::complex_component(x.type()));
  return result;
}

}  // namespace heddle::hlo
