// Shapes of operators that cut, pad, gather and scatter.
#include <algorithm>

#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Start indices of dynamic-slice: one scalar per dimension, or one vector of them.
Status want_starts(const ShapeQuery& q, size_t first, int64_t rank) {
  const size_t starts = q.count() - first;
  const bool vector = starts == 1 && q.operand(first).is_array() && q.operand(first).rank() == 1;
  if (vector) {
    if (!agree(q.operand(first).dims()[0], Dim(rank)))
      return shape_error(q, "operand {} is {}, wanted {} start indices", first,
                         text(q.operand(first)), rank);
    return want_type(q, first, kInteger);
  }
  if (static_cast<int64_t>(starts) != rank)
    return shape_error(q, "{} start indices, wanted {}", starts, rank);
  for (size_t i = first; i < q.count(); ++i) {
    HEDDLE_RETURN_IF_ERROR(want_type(q, i, kInteger));
    HEDDLE_RETURN_IF_ERROR(want_scalar(q, i));
    HEDDLE_RETURN_IF_ERROR(want_same_type(q, i, first));
  }
  return {};
}

// The indices' dimensions without the one that holds the index vector.
std::vector<Dim> batch_dims_of(const Shape& indices, int64_t index_vector_dim) {
  std::vector<Dim> dims;
  for (int64_t d = 0; d < indices.rank(); ++d)
    if (d != index_vector_dim) dims.push_back(indices.dims()[d]);
  return dims;
}

// Dimension numbers common to gather and scatter, under each operator's attribute names.
struct IndexDims {
  const Shape &operand, &indices;
  int64_t index_vector_dim;
  const Ints &map, &dropped, &operand_batching, &indices_batching;
  std::string_view map_name, dropped_name, operand_batching_name, indices_batching_name;
};

Status check_batching(const ShapeQuery& q, const IndexDims& x) {
  HEDDLE_RETURN_IF_ERROR(
      want_dims(q, x.operand_batching, x.operand.rank(), x.operand_batching_name, true));
  HEDDLE_RETURN_IF_ERROR(
      want_dims(q, x.indices_batching, x.indices.rank(), x.indices_batching_name));
  if (x.operand_batching.size() != x.indices_batching.size())
    return shape_error(q, "{}={} and {}={} differ in length", x.operand_batching_name,
                       text(x.operand_batching), x.indices_batching_name, text(x.indices_batching));
  if (contains(x.indices_batching, x.index_vector_dim))
    return shape_error(q, "{}={} contains index_vector_dim", x.indices_batching_name,
                       text(x.indices_batching));
  for (size_t i = 0; i < x.operand_batching.size(); ++i) {
    const int64_t a = x.operand_batching[i], b = x.indices_batching[i];
    if (!agree(x.operand.dims()[a], x.indices.dims()[b]))
      return shape_error(q, "batching dims {} and {} differ (operand 0 axis {}, indices axis {})",
                         text(x.operand.dims()[a]), text(x.indices.dims()[b]), a, b);
    if (contains(x.dropped, a) || contains(x.map, a))
      return shape_error(q, "dimension {} is in {} and in {}", a, x.operand_batching_name,
                         contains(x.dropped, a) ? x.dropped_name : x.map_name);
  }
  return {};
}

Status check_index_dims(const ShapeQuery& q, const IndexDims& x) {
  if (x.index_vector_dim < 0 || x.index_vector_dim > x.indices.rank())
    return shape_error(q, "index_vector_dim {} is outside the indices {}", x.index_vector_dim,
                       text(x.indices));
  // If index_vector_dim is past the last dimension, an index is one number.
  const Dim vector =
      x.index_vector_dim == x.indices.rank() ? Dim(1) : x.indices.dims()[x.index_vector_dim];
  if (!agree(vector, Dim(static_cast<int64_t>(x.map.size()))))
    return shape_error(q, "{}={} has {} entries, index vectors have {}", x.map_name, text(x.map),
                       x.map.size(), text(vector));
  HEDDLE_RETURN_IF_ERROR(want_dims(q, x.map, x.operand.rank(), x.map_name));
  HEDDLE_RETURN_IF_ERROR(want_dims(q, x.dropped, x.operand.rank(), x.dropped_name, true));
  return check_batching(q, x);
}

}  // namespace

Result<Shape> slice_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  const Shape& x = q.operand(0);
  const auto& a = q.attrs_as<SliceAttrs>();
  const size_t rank = x.dims().size();
  if (a.starts.size() != rank || a.limits.size() != rank || a.strides.size() != rank)
    return shape_error(q, "{} starts, {} limits and {} strides for {}", a.starts.size(),
                       a.limits.size(), a.strides.size(), text(x));
  std::vector<Dim> dims;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t start = a.starts[d], limit = a.limits[d], stride = a.strides[d];
    const Dim& dim = x.dims()[d];
    if (start < 0 || limit < start || (!unbounded(dim) && limit > dim.size) || stride < 1)
      return shape_error(q, "[{}:{}:{}] of {} (operand 0 axis {})", start, limit, stride, text(dim),
                         d);
    const int64_t extent = (limit - start) / stride + ((limit - start) % stride != 0);
    // One element of a dynamic dimension always exists; the others may not (XLA's rule).
    const bool dynamic = dim.dynamic && !unbounded(dim) && extent != 1;
    dims.push_back(dynamic ? resized(dim, extent) : Dim(extent));
    if (dynamic && (start != 0 || stride != 1)) dims.back().symbol.clear();
  }
  return Shape(x.type(), std::move(dims));
}

Result<Shape> pad_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  HEDDLE_RETURN_IF_ERROR(want_scalar(q, 1));
  const Shape& x = q.operand(0);
  const auto& a = q.attrs_as<PadAttrs>();
  const size_t rank = x.dims().size();
  if (a.low.size() != rank || a.high.size() != rank || a.interior.size() != rank)
    return shape_error(q, "padding of {} dimensions for {}", a.low.size(), text(x));
  std::vector<Dim> dims;
  for (size_t d = 0; d < rank; ++d) {
    const Dim& dim = x.dims()[d];
    if (a.interior[d] < 0)
      return shape_error(q, "interior padding {} is negative (axis {})", a.interior[d], d);
    if (unbounded(dim)) {
      dims.push_back(dim);
      if (a.low[d] != 0 || a.high[d] != 0 || a.interior[d] != 0) dims.back().symbol.clear();
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(int64_t extent,
                            multiply_extents(q, std::max<int64_t>(dim.size - 1, 0), a.interior[d]));
    HEDDLE_ASSIGN_OR_RETURN(extent, add_extents(q, extent, dim.size));
    HEDDLE_ASSIGN_OR_RETURN(extent, add_extents(q, extent, a.low[d]));
    HEDDLE_ASSIGN_OR_RETURN(extent, add_extents(q, extent, a.high[d]));
    if (extent < 0)
      return shape_error(q, "padding {}_{} takes more than dim {} has (axis {})", a.low[d],
                         a.high[d], text(dim), d);
    dims.push_back(resized(dim, extent));
    if (a.low[d] != 0 || a.high[d] != 0 || a.interior[d] != 0) dims.back().symbol.clear();
  }
  return Shape(x.type(), std::move(dims));
}

Result<Shape> dynamic_slice_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  const Shape& x = q.operand(0);
  const Ints& sizes = q.attrs_as<DynamicSliceAttrs>().slice_sizes;
  HEDDLE_RETURN_IF_ERROR(want_starts(q, 1, x.rank()));
  if (static_cast<int64_t>(sizes.size()) != x.rank())
    return shape_error(q, "dynamic_slice_sizes={} for {}", text(sizes), text(x));
  std::vector<Dim> dims;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const Dim& dim = x.dims()[d];
    if (sizes[d] < 0 || (!unbounded(dim) && sizes[d] > dim.size))
      return shape_error(q, "slice size {} of dim {} (operand 0 axis {})", sizes[d], text(dim), d);
    dims.push_back(!unbounded(dim) && sizes[d] == dim.size ? dim : Dim(sizes[d]));
  }
  return Shape(x.type(), std::move(dims));
}

Result<Shape> dynamic_update_slice_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_array(q, 1));
  const Shape &x = q.operand(0), &update = q.operand(1);
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, 1, 0));
  HEDDLE_RETURN_IF_ERROR(want_rank(q, 1, x.rank()));
  HEDDLE_RETURN_IF_ERROR(want_starts(q, 2, x.rank()));
  for (int64_t d = 0; d < x.rank(); ++d) {
    const Dim &dim = x.dims()[d], &part = update.dims()[d];
    if (!unbounded(dim) && !unbounded(part) && part.size > dim.size)
      return shape_error(q, "update dim {} is larger than dim {} (operand 1 axis {})", text(part),
                         text(dim), d);
  }
  return Shape(x.type(), x.dims());
}

Result<Shape> gather_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_type(q, 1, kInteger));
  const Shape &x = q.operand(0), &indices = q.operand(1);
  const auto& a = q.attrs_as<GatherAttrs>();
  HEDDLE_RETURN_IF_ERROR(check_index_dims(
      q, {x, indices, a.index_vector_dim, a.start_index_map, a.collapsed_slice_dims,
          a.operand_batching_dims, a.start_indices_batching_dims, "start_index_map",
          "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims"}));
  const std::vector<Dim> batch = batch_dims_of(indices, a.index_vector_dim);
  const int64_t rank = static_cast<int64_t>(batch.size() + a.offset_dims.size());
  HEDDLE_RETURN_IF_ERROR(want_dims(q, a.offset_dims, rank, "offset_dims", true));
  const size_t kept =
      a.offset_dims.size() + a.collapsed_slice_dims.size() + a.operand_batching_dims.size();
  if (static_cast<int64_t>(a.slice_sizes.size()) != x.rank() ||
      static_cast<int64_t>(kept) != x.rank())
    return shape_error(q, "slice_sizes={} and {} offset, collapsed and batching dims for {}",
                       text(a.slice_sizes), kept, text(x));
  std::vector<Dim> window;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const Dim& dim = x.dims()[d];
    const int64_t size = a.slice_sizes[d];
    const bool drop = contains(a.collapsed_slice_dims, d) || contains(a.operand_batching_dims, d);
    if (size < 0 || (!unbounded(dim) && size > dim.size) || (drop && size > 1))
      return shape_error(q, "slice size {} of dim {} (operand 0 axis {}){}", size, text(dim), d,
                         drop ? "; it is collapsed and must be 1" : "");
    if (!drop) window.push_back(!unbounded(dim) && size == dim.size ? dim : Dim(size));
  }
  std::vector<Dim> dims;
  size_t next_window = 0, next_batch = 0;
  for (int64_t d = 0; d < rank; ++d)
    dims.push_back(contains(a.offset_dims, d) ? window[next_window++] : batch[next_batch++]);
  return Shape(x.type(), std::move(dims));
}

// One operand with its update, under scatter's dimension numbers.
static Status check_update(const ShapeQuery& q, size_t operand, size_t update) {
  const auto& a = q.attrs_as<ScatterAttrs>();
  const Shape &x = q.operand(operand), &indices = q.operand(q.count() / 2), &u = q.operand(update);
  HEDDLE_RETURN_IF_ERROR(want_same_type(q, update, operand));
  HEDDLE_RETURN_IF_ERROR(check_index_dims(
      q, {x, indices, a.index_vector_dim, a.scatter_dims_to_operand_dims, a.inserted_window_dims,
          a.input_batching_dims, a.scatter_indices_batching_dims, "scatter_dims_to_operand_dims",
          "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"}));
  const std::vector<Dim> batch = batch_dims_of(indices, a.index_vector_dim);
  HEDDLE_RETURN_IF_ERROR(
      want_rank(q, update, static_cast<int64_t>(batch.size() + a.update_window_dims.size())));
  HEDDLE_RETURN_IF_ERROR(want_dims(q, a.update_window_dims, u.rank(), "update_window_dims", true));
  std::vector<int64_t> window;  // operand dimensions that the windows span
  for (int64_t d = 0; d < x.rank(); ++d)
    if (!contains(a.inserted_window_dims, d) && !contains(a.input_batching_dims, d))
      window.push_back(d);
  if (window.size() != a.update_window_dims.size())
    return shape_error(q, "update_window_dims={} spans {} dimensions, windows of {} have {}",
                       text(a.update_window_dims), a.update_window_dims.size(), text(x),
                       window.size());
  size_t next_window = 0, next_batch = 0;
  for (int64_t d = 0; d < u.rank(); ++d) {
    const Dim& dim = u.dims()[d];
    if (contains(a.update_window_dims, d)) {
      const int64_t axis = window[next_window++];
      if (!unbounded(dim) && !unbounded(x.dims()[axis]) && dim.size > x.dims()[axis].size)
        return shape_error(q, "update dim {} is larger than dim {} (operand {} axis {})", text(dim),
                           text(x.dims()[axis]), update, d);
    } else if (const Dim& wanted = batch[next_batch++]; !agree(dim, wanted)) {
      return shape_error(q, "dims {} and {} differ (operand {} axis {} and the indices)", text(dim),
                         text(wanted), update, d);
    }
  }
  return {};
}

Result<Shape> scatter_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  if (q.count() % 2 == 0)
    return shape_error(q, "{} operands, wanted n inputs, the indices and n updates", q.count());
  const size_t n = q.count() / 2;
  HEDDLE_RETURN_IF_ERROR(want_type(q, n, kInteger));
  std::vector<Shape> results;
  for (size_t i = 0; i < n; ++i) {
    if (!same_dims(q.operand(i), q.operand(0)))
      return shape_error(q, "operand {} is {}, wanted the dimensions of {}", i, text(q.operand(i)),
                         text(q.operand(0)));
    HEDDLE_RETURN_IF_ERROR(check_update(q, i, n + 1 + i));
    results.emplace_back(q.operand(i).type(), q.operand(i).dims());
  }
  return n == 1 ? results[0] : Shape::make_tuple(std::move(results));
}

}  // namespace heddle::hlo
