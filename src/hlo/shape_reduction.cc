// Shapes of reductions, scans, windows, sort and top-k.
#include <algorithm>

#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

Shape one_or_tuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : Shape::make_tuple(std::move(shapes));
}

// n arrays of equal dimensions and n scalar start values of the same types.
Status want_arrays_and_starts(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  if (q.count() % 2 != 0)
    return shape_error(q, "{} operands, wanted n arrays and n start values", q.count());
  const size_t n = q.count() / 2;
  for (size_t i = 0; i < n; ++i) {
    if (!same_dims(q.operand(i), q.operand(0)))
      return shape_error(q, "operand {} is {}, wanted the dimensions of {}", i, text(q.operand(i)),
                         text(q.operand(0)));
    HEDDLE_RETURN_IF_ERROR(want_scalar(q, n + i));
    HEDDLE_RETURN_IF_ERROR(want_same_type(q, n + i, i));
  }
  return {};
}

Result<std::vector<Dim>> window_dims(const ShapeQuery& q, const Shape& x, const Window& window) {
  if (static_cast<int64_t>(window.dims.size()) != x.rank())
    return shape_error(q, "a window of {} dimensions for {}", window.dims.size(), text(x));
  std::vector<Dim> dims;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const Dim& dim = x.dims()[d];
    HEDDLE_ASSIGN_OR_RETURN(int64_t extent,
                            window_extent(q, unbounded(dim) ? 1 : dim.size, window.dims[d], d));
    dims.push_back(window.dims[d] == WindowDim{} ? dim : resized(dim, extent));
    if (!(window.dims[d] == WindowDim{})) dims.back().symbol.clear();
  }
  return dims;
}

}  // namespace

Result<Shape> reduce_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays_and_starts(q));
  const Shape& x = q.operand(0);
  const Ints& reduced = q.attrs_as<DimensionsAttrs>().dimensions;
  HEDDLE_RETURN_IF_ERROR(want_dims(q, reduced, x.rank(), "dimensions"));
  std::vector<bool> drop(x.dims().size());
  for (int64_t d : reduced) drop[d] = true;
  std::vector<Dim> dims;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (drop[d]) continue;
    Dim dim = x.dims()[d];
    for (size_t i = 1; i < q.count() / 2; ++i) dim = merged(dim, q.operand(i).dims()[d]);
    dims.push_back(std::move(dim));
  }
  std::vector<Shape> results;
  for (size_t i = 0; i < q.count() / 2; ++i) results.emplace_back(q.operand(i).type(), dims);
  return one_or_tuple(std::move(results));
}

Result<Shape> reduce_window_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays_and_starts(q));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Dim> dims,
                          window_dims(q, q.operand(0), q.attrs_as<WindowAttrs>().window));
  std::vector<Shape> results;
  for (size_t i = 0; i < q.count() / 2; ++i) results.emplace_back(q.operand(i).type(), dims);
  return one_or_tuple(std::move(results));
}

// Operands: the array, the source (one element a window), the start value.
Result<Shape> select_and_scatter_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 2, 0));
  HEDDLE_RETURN_IF_ERROR(want_scalar(q, 2));
  const Shape& x = q.operand(0);
  HEDDLE_ASSIGN_OR_RETURN(std::vector<Dim> dims,
                          window_dims(q, x, q.attrs_as<WindowAttrs>().window));
  const Shape windows(x.type(), std::move(dims));
  if (!same_dims(windows, q.operand(1)))
    return shape_error(q, "operand 1 is {}, the windows are {}", text(q.operand(1)), text(windows));
  return Shape(x.type(), x.dims());
}

// Operands: arrays, then num_carries start values. to_apply takes slices of the arrays without the
// scanned dimension and the carries; it gives slices of the outputs and the carries.
Result<Shape> scan_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  const auto& a = q.attrs_as<ScanAttrs>();
  const int64_t arrays = static_cast<int64_t>(q.count()) - a.num_carries;
  HEDDLE_RETURN_IF_ERROR(want_dim(q, a.dimension, q.operand(0).rank(), "dimensions"));
  Dim scanned = q.operand(0).dims()[a.dimension];
  for (int64_t i = 1; i < arrays; ++i) {
    HEDDLE_RETURN_IF_ERROR(want_dim(q, a.dimension, q.operand(i).rank(), "dimensions"));
    const Dim& other = q.operand(i).dims()[a.dimension];
    if (!agree(scanned, other))
      return shape_error(q, "dims {} and {} differ (operand {} axis {})", text(scanned),
                         text(other), i, a.dimension);
    scanned = merged(scanned, other);
  }
  const Shape& result = q.called[0]->root()->shape();
  const std::vector<Shape> slices =
      result.is_tuple() ? result.elements() : std::vector<Shape>{result};
  const int64_t outputs = static_cast<int64_t>(slices.size()) - a.num_carries;
  std::vector<Shape> results;
  for (int64_t i = 0; i < static_cast<int64_t>(slices.size()); ++i) {
    if (i >= outputs) {
      results.push_back(slices[i]);
      continue;
    }
    std::vector<Dim> dims = slices[i].dims();
    if (!slices[i].is_array() || a.dimension > static_cast<int64_t>(dims.size()))
      return shape_error(q, "output {} of to_apply is {}, it has no place for dimension {}", i,
                         text(slices[i]), a.dimension);
    dims.insert(dims.begin() + a.dimension, scanned);
    results.emplace_back(slices[i].type(), std::move(dims));
  }
  return result.is_tuple() ? Shape::make_tuple(std::move(results)) : results[0];
}

Result<Shape> sort_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_RETURN_IF_ERROR(
      want_dim(q, q.attrs_as<SortAttrs>().dimension, q.operand(0).rank(), "dimensions"));
  std::vector<Shape> results;
  for (size_t i = 0; i < q.count(); ++i) {
    if (!same_dims(q.operand(i), q.operand(0)))
      return shape_error(q, "operand {} is {}, wanted the dimensions of {}", i, text(q.operand(i)),
                         text(q.operand(0)));
    results.emplace_back(q.operand(i).type(), q.operand(i).dims());
  }
  return one_or_tuple(std::move(results));
}

// Along the last dimension: the k values and their s32 indices.
Result<Shape> topk_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_type(q, 0, kAnyType & ~kComplex));
  const Shape& x = q.operand(0);
  const int64_t k = q.attrs_as<TopKAttrs>().k;
  if (x.rank() < 1) return shape_error(q, "operand 0 is {}, wanted rank 1 or more", text(x));
  const Dim& last = x.dims().back();
  if (k < 0 || (!unbounded(last) && k > last.size))
    return shape_error(q, "k {} of dim {} (operand 0 axis {})", k, text(last), x.rank() - 1);
  std::vector<Dim> dims = x.dims();
  dims.back() = Dim(k);
  return Shape::make_tuple({Shape(x.type(), dims), Shape(Type::s32, dims)});
}

}  // namespace heddle::hlo
