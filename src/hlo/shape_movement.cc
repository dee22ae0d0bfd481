// Shapes of operators that rename, order or repeat dimensions.
#include <algorithm>

#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

Status want_same_elems(const ShapeQuery& q, const Shape& to) {
  const std::optional<int64_t> have = known_elems(q.operand(0)), want = known_elems(to);
  if (have && want && *have != *want)
    return shape_error(q, "{} has {} elements, {} has {}", text(q.operand(0)), *have, text(to),
                       *want);
  return {};
}

}  // namespace

Result<Shape> bitcast_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  HEDDLE_RETURN_IF_ERROR(want_countable(q, *q.declared));
  const std::optional<int64_t> have = known_elems(q.operand(0)), want = known_elems(*q.declared);
  if (have && want) {
    const __int128 have_bits =
        static_cast<__int128>(*have) * tensor::type_bits(q.operand(0).type());
    const __int128 want_bits = static_cast<__int128>(*want) * tensor::type_bits(q.declared->type());
    if (have_bits != want_bits)
      return shape_error(q, "{} and {} differ in size", text(q.operand(0)), text(*q.declared));
  }
  return *q.declared;
}

Result<Shape> broadcast_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  const Shape &x = q.operand(0), &out = *q.declared;
  const Ints& dims = q.attrs_as<DimensionsAttrs>().dimensions;
  if (static_cast<int64_t>(dims.size()) != x.rank())
    return shape_error(q, "dimensions={} has {} entries, operand 0 is {}", text(dims), dims.size(),
                       text(x));
  HEDDLE_RETURN_IF_ERROR(want_dims(q, dims, out.rank(), "dimensions"));
  Shape result(x.type(), out.dims());
  for (int64_t i = 0; i < x.rank(); ++i) {
    const Dim &from = x.dims()[i], &to = out.dims()[dims[i]];
    if (!agree(from, to))
      return shape_error(q, "dims {} and {} differ (operand 0 axis {}, output axis {})", text(from),
                         text(to), i, dims[i]);
  }
  return result;
}

Result<Shape> concatenate_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  const Ints& dims = q.attrs_as<DimensionsAttrs>().dimensions;
  if (dims.size() != 1) return shape_error(q, "dimensions={} must name one dimension", text(dims));
  Shape result(q.operand(0).type(), q.operand(0).dims());
  HEDDLE_RETURN_IF_ERROR(want_dim(q, dims[0], result.rank(), "dimensions"));
  for (size_t i = 1; i < q.count(); ++i) {
    const Shape& part = q.operand(i);
    HEDDLE_RETURN_IF_ERROR(want_same_type(q, i, 0));
    HEDDLE_RETURN_IF_ERROR(want_rank(q, i, result.rank()));
    for (int64_t d = 0; d < result.rank(); ++d) {
      const Dim &a = result.dims()[d], &b = part.dims()[d];
      if (d != dims[0]) {
        if (!agree(a, b))
          return shape_error(q, "dims {} and {} differ (operand {} axis {})", text(a), text(b), i,
                             d);
        result.set_dim(d, merged(a, b));
        continue;
      }
      Dim sum;
      sum.dynamic = a.dynamic || b.dynamic;
      if (unbounded(a) || unbounded(b)) {
        sum.size = Dim::kUnbounded;
      } else {
        HEDDLE_ASSIGN_OR_RETURN(sum.size, add_extents(q, a.size, b.size));
      }
      result.set_dim(d, sum);
    }
  }
  return result;
}

Result<Shape> reshape_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  HEDDLE_RETURN_IF_ERROR(want_countable(q, *q.declared));
  HEDDLE_RETURN_IF_ERROR(want_same_elems(q, *q.declared));
  const int64_t inferred = q.attrs_as<ReshapeAttrs>().inferred_dimension;
  if (inferred != -1)
    HEDDLE_RETURN_IF_ERROR(want_dim(q, inferred, q.declared->rank(), "inferred_dimension"));
  return Shape(q.operand(0).type(), q.declared->dims());
}

Result<Shape> dynamic_reshape_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  HEDDLE_RETURN_IF_ERROR(want_countable(q, *q.declared));
  if (static_cast<int64_t>(q.count()) != 1 + q.declared->rank())
    return shape_error(q, "{} operands, wanted the data and {} sizes", q.count(),
                       q.declared->rank());
  for (size_t i = 1; i < q.count(); ++i) {
    HEDDLE_RETURN_IF_ERROR(want_type(q, i, kInteger));
    HEDDLE_RETURN_IF_ERROR(want_scalar(q, i));
  }
  HEDDLE_RETURN_IF_ERROR(want_same_elems(q, *q.declared));
  return Shape(q.operand(0).type(), q.declared->dims());
}

Result<Shape> transpose_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  const Shape& x = q.operand(0);
  const Ints& dims = q.attrs_as<DimensionsAttrs>().dimensions;
  if (static_cast<int64_t>(dims.size()) != x.rank())
    return shape_error(q, "dimensions={} is not a permutation of the {} dimensions of operand 0",
                       text(dims), x.rank());
  HEDDLE_RETURN_IF_ERROR(want_dims(q, dims, x.rank(), "dimensions"));
  std::vector<Dim> out;
  for (int64_t dim : dims) out.push_back(x.dims()[dim]);
  return Shape(x.type(), std::move(out));
}

Result<Shape> reverse_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  const Shape& x = q.operand(0);
  HEDDLE_RETURN_IF_ERROR(
      want_dims(q, q.attrs_as<DimensionsAttrs>().dimensions, x.rank(), "dimensions"));
  return Shape(x.type(), x.dims());
}

Result<Shape> iota_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_declared_array(q));
  if (!in_set(q.declared->type(), kNumber))
    return shape_error(q, "declared {}, wanted {}", text(*q.declared), set_text(kNumber));
  HEDDLE_RETURN_IF_ERROR(
      want_dim(q, q.attrs_as<DimensionAttrs>().dimension, q.declared->rank(), "iota_dimension"));
  return *q.declared;
}

Result<Shape> get_dimension_size_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(
      want_dim(q, q.attrs_as<DimensionAttrs>().dimension, q.operand(0).rank(), "dimensions"));
  return Shape::scalar(Type::s32);
}

Result<Shape> set_dimension_size_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  const Shape& x = q.operand(0);
  const int64_t dimension = q.attrs_as<DimensionAttrs>().dimension;
  HEDDLE_RETURN_IF_ERROR(want_dim(q, dimension, x.rank(), "dimensions"));
  HEDDLE_RETURN_IF_ERROR(want_scalar(q, 1));
  if (q.operand(1).type() != Type::s32)
    return shape_error(q, "operand 1 is {}, wanted s32[]", text(q.operand(1)));
  Shape result(x.type(), x.dims());
  // The size is independent from here on: the old symbol no longer names it.
  Dim dim = x.dims()[dimension];
  dim.dynamic = true;
  dim.symbol.clear();
  result.set_dim(dimension, dim);
  return result;
}

}  // namespace heddle::hlo
