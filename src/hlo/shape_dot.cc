// Shapes of contractions and convolution.
#include <algorithm>

#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

bool contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Type of the products: the declared one (bf16 x bf16 -> f32, s8 x s8 -> s32), else the operands'
// type, or the wider of two float types.
Result<Type> product_type(const ShapeQuery& q) {
  const Type a = q.operand(0).type(), b = q.operand(1).type();
  const bool mixed = (tensor::is_float(a) && tensor::is_float(b)) ||
                     (tensor::is_integer(a) && tensor::is_integer(b));
  if (a != b && !mixed)
    return shape_error(q, "types {} and {} do not mix (operands 0 and 1)", tensor::type_name(a),
                       tensor::type_name(b));
  if (q.declared && q.declared->is_array()) {
    const Type out = q.declared->type();
    if (tensor::is_complex(a) && !tensor::is_complex(out))
      return shape_error(q, "declared {}, the operands are complex", text(*q.declared));
    return out;
  }
  return tensor::type_bits(b) > tensor::type_bits(a) ? b : a;
}

// Batch dimensions, and the remaining free dimensions of each side.
struct DotDims {
  std::vector<Dim> batch, lhs_free, rhs_free;
};

Status want_pairs(const ShapeQuery& q, const Ints& lhs, const Ints& rhs, std::string_view what,
                  bool compare_sizes) {
  if (lhs.size() != rhs.size())
    return shape_error(q, "lhs_{0}_dims={1} and rhs_{0}_dims={2} differ in length", what, text(lhs),
                       text(rhs));
  for (size_t i = 0; compare_sizes && i < lhs.size(); ++i) {
    const Dim &a = q.operand(0).dims()[lhs[i]], &b = q.operand(1).dims()[rhs[i]];
    if (!agree(a, b))
      return shape_error(q, "{} dims {} and {} differ (operand 1 axis {})", what, text(a), text(b),
                         rhs[i]);
  }
  return {};
}

Result<DotDims> dot_dims(const ShapeQuery& q, const DotAttrs& a) {
  HEDDLE_RETURN_IF_ERROR(want_array(q, 0));
  HEDDLE_RETURN_IF_ERROR(want_array(q, 1));
  const Shape &lhs = q.operand(0), &rhs = q.operand(1);
  auto all = [](const Ints& x, const Ints& y) {
    Ints both = x;
    both.insert(both.end(), y.begin(), y.end());
    return both;
  };
  const Ints lhs_used = all(a.lhs_batch_dims, a.lhs_contracting_dims);
  const Ints rhs_used = all(a.rhs_batch_dims, a.rhs_contracting_dims);
  HEDDLE_RETURN_IF_ERROR(want_dims(q, lhs_used, lhs.rank(), "lhs batch and contracting dims"));
  HEDDLE_RETURN_IF_ERROR(want_dims(q, rhs_used, rhs.rank(), "rhs batch and contracting dims"));
  HEDDLE_RETURN_IF_ERROR(want_pairs(q, a.lhs_batch_dims, a.rhs_batch_dims, "batch", true));
  // Further operands of a dot are the metadata of a sparse side, whose contracted extent is
  // smaller.
  const bool dense = q.opcode != Opcode::dot || q.count() == 2;
  HEDDLE_RETURN_IF_ERROR(
      want_pairs(q, a.lhs_contracting_dims, a.rhs_contracting_dims, "contracting", dense));
  DotDims dims;
  for (size_t i = 0; i < a.lhs_batch_dims.size(); ++i)
    dims.batch.push_back(merged(lhs.dims()[a.lhs_batch_dims[i]], rhs.dims()[a.rhs_batch_dims[i]]));
  for (int64_t d = 0; d < lhs.rank(); ++d)
    if (!contains(lhs_used, d)) dims.lhs_free.push_back(lhs.dims()[d]);
  for (int64_t d = 0; d < rhs.rank(); ++d)
    if (!contains(rhs_used, d)) dims.rhs_free.push_back(rhs.dims()[d]);
  return dims;
}

Result<Shape> product_shape(const ShapeQuery& q, const DotDims& dims) {
  HEDDLE_ASSIGN_OR_RETURN(Type type, product_type(q));
  std::vector<Dim> out = dims.batch;
  out.insert(out.end(), dims.lhs_free.begin(), dims.lhs_free.end());
  out.insert(out.end(), dims.rhs_free.begin(), dims.rhs_free.end());
  return Shape(type, std::move(out));
}

// group_sizes is [g], optionally preceded by the dimensions of lhs outside the ragged one.
Status check_group_sizes(const ShapeQuery& q, const std::vector<Dim>& outer) {
  const Shape& groups = q.operand(2);
  HEDDLE_RETURN_IF_ERROR(want_type(q, 2, kInteger));
  if (groups.rank() == 1) return {};
  bool fits = groups.rank() == static_cast<int64_t>(outer.size()) + 1;
  for (size_t d = 0; fits && d < outer.size(); ++d) fits = agree(groups.dims()[d], outer[d]);
  if (fits) return {};
  return shape_error(q, "group sizes are {}, wanted one row or one for each of {}", text(groups),
                     text(Shape(groups.type(), outer)));
}

// Dimensions of lhs in `list` order, up to the ragged one.
void append_until(const Shape& lhs, const Ints& list, int64_t ragged, std::vector<Dim>& out) {
  for (int64_t d : list) {
    if (d == ragged) return;
    out.push_back(lhs.dims()[d]);
  }
}

}  // namespace

Result<Shape> dot_shape(const ShapeQuery& q) {
  HEDDLE_ASSIGN_OR_RETURN(DotDims dims, dot_dims(q, q.attrs_as<DotAttrs>()));
  return product_shape(q, dims);
}

// Operands 2 and 3 scale blocks of operands 0 and 1: each extent divides the one it scales.
Result<Shape> scaled_dot_shape(const ShapeQuery& q) {
  HEDDLE_ASSIGN_OR_RETURN(DotDims dims, dot_dims(q, q.attrs_as<DotAttrs>()));
  if (q.count() > 4) return shape_error(q, "{} operands, wanted at most 4", q.count());
  for (size_t i = 2; i < q.count(); ++i) {
    HEDDLE_RETURN_IF_ERROR(want_type(q, i, kFloat));
    const Shape &x = q.operand(i - 2), &scale = q.operand(i);
    if (scale.rank() == 0) continue;
    HEDDLE_RETURN_IF_ERROR(want_rank(q, i, x.rank()));
    for (int64_t d = 0; d < x.rank(); ++d) {
      const Dim &dim = x.dims()[d], &blocks = scale.dims()[d];
      if (unbounded(dim) || unbounded(blocks)) continue;
      if (blocks.size == 0 ? dim.size != 0 : dim.size % blocks.size != 0)
        return shape_error(q, "{} scales for dim {} (operand {} axis {})", text(blocks), text(dim),
                           i, d);
    }
  }
  return product_shape(q, dims);
}

// Groups along one ragged dimension of lhs. If it is free, rhs has a group dimension: [m,k] x
// [g,k,n]; if contracting, the output gets a leading one: [g,m,n]; if batch, nothing changes.
Result<Shape> ragged_dot_shape(const ShapeQuery& q) {
  const auto& a = q.attrs_as<RaggedDotAttrs>();
  HEDDLE_ASSIGN_OR_RETURN(DotDims dims, dot_dims(q, a.dot));
  const Shape &lhs = q.operand(0), &rhs = q.operand(1), &groups = q.operand(2);
  if (a.lhs_ragged_dims.size() != 1)
    return shape_error(q, "lhs_ragged_dims={} must name one dimension", text(a.lhs_ragged_dims));
  const int64_t ragged = a.lhs_ragged_dims[0];
  HEDDLE_RETURN_IF_ERROR(want_dim(q, ragged, lhs.rank(), "lhs_ragged_dims"));
  HEDDLE_RETURN_IF_ERROR(want_dims(q, a.rhs_group_dims, rhs.rank(), "rhs_group_dims"));
  const bool is_batch = contains(a.dot.lhs_batch_dims, ragged);
  const bool is_contracting = contains(a.dot.lhs_contracting_dims, ragged);
  const size_t wanted_groups = is_batch || is_contracting ? 0 : 1;
  if (a.rhs_group_dims.size() != wanted_groups)
    return shape_error(q, "rhs_group_dims={} must name {} dimension(s)", text(a.rhs_group_dims),
                       wanted_groups);
  std::vector<Dim> outer;
  append_until(lhs, a.dot.lhs_batch_dims, is_batch ? ragged : -1, outer);
  if (is_contracting) {
    append_until(lhs, a.dot.lhs_contracting_dims, ragged, outer);
  } else if (!is_batch) {
    for (int64_t d = 0; d < ragged; ++d)
      if (!contains(a.dot.lhs_batch_dims, d) && !contains(a.dot.lhs_contracting_dims, d))
        outer.push_back(lhs.dims()[d]);
  }
  HEDDLE_RETURN_IF_ERROR(check_group_sizes(q, outer));
  if (groups.rank() < 1) return shape_error(q, "group sizes are {}", text(groups));
  const Dim& count = groups.dims().back();
  if (wanted_groups == 1) {
    const int64_t group = a.rhs_group_dims[0];
    if (contains(a.dot.rhs_batch_dims, group) || contains(a.dot.rhs_contracting_dims, group))
      return shape_error(q, "rhs_group_dims={} is a batch or contracting dimension",
                         text(a.rhs_group_dims));
    if (!agree(rhs.dims()[group], count))
      return shape_error(q, "group dims {} and {} differ (operand 1 axis {})",
                         text(rhs.dims()[group]), text(count), group);
    dims.rhs_free.clear();
    for (int64_t d = 0; d < rhs.rank(); ++d)
      if (d != group && !contains(a.dot.rhs_batch_dims, d) &&
          !contains(a.dot.rhs_contracting_dims, d))
        dims.rhs_free.push_back(rhs.dims()[d]);
  }
  if (is_contracting) dims.batch.insert(dims.batch.begin(), count);
  return product_shape(q, dims);
}

namespace {

// Checks that every dimension has exactly one role.
Status want_roles(const ShapeQuery& q, int64_t a, int64_t b, const Ints& spatial, int64_t rank,
                  std::string_view what) {
  Ints all = spatial;
  all.push_back(a);
  all.push_back(b);
  if (static_cast<int64_t>(all.size()) != rank)
    return shape_error(q, "dim_labels name {} {} dimensions of {}", all.size(), what, rank);
  return want_dims(q, all, rank, what);
}

Status check_groups(const ShapeQuery& q, const ConvolutionAttrs& a) {
  const Shape &x = q.operand(0), &kernel = q.operand(1);
  const int64_t fgroups = a.feature_group_count, bgroups = a.batch_group_count;
  if (fgroups < 1 || bgroups < 1 || (fgroups > 1 && bgroups > 1))
    return shape_error(q, "feature_group_count {} and batch_group_count {}: one of them must be 1",
                       fgroups, bgroups);
  const Dim &in = x.dims()[a.dims.input_feature],
            &kernel_in = kernel.dims()[a.dims.kernel_input_feature],
            &out = kernel.dims()[a.dims.kernel_output_feature],
            &batch = x.dims()[a.dims.input_batch];
  if (!unbounded(in) && !unbounded(kernel_in)) {
    HEDDLE_ASSIGN_OR_RETURN(int64_t wanted, multiply_extents(q, kernel_in.size, fgroups));
    if (in.size != wanted)
      return shape_error(q, "feature dims {} and {} x {} groups differ (operand 1 axis {})",
                         text(in), text(kernel_in), fgroups, a.dims.kernel_input_feature);
  }
  if (!unbounded(out) && (out.size % fgroups != 0 || out.size % bgroups != 0))
    return shape_error(q, "{} output features do not divide into {} groups", text(out),
                       std::max(fgroups, bgroups));
  if (!unbounded(batch) && batch.size % bgroups != 0)
    return shape_error(q, "batch {} does not divide into {} groups", text(batch), bgroups);
  return {};
}

}  // namespace

Result<Shape> convolution_shape(const ShapeQuery& q) {
  HEDDLE_RETURN_IF_ERROR(want_arrays(q));
  const Shape &x = q.operand(0), &kernel = q.operand(1);
  const auto& a = q.attrs_as<ConvolutionAttrs>();
  HEDDLE_RETURN_IF_ERROR(want_rank(q, 1, x.rank()));
  const size_t spatial = a.window.dims.size();
  HEDDLE_RETURN_IF_ERROR(want_roles(q, a.dims.input_batch, a.dims.input_feature,
                                    a.dims.input_spatial, x.rank(), "input"));
  HEDDLE_RETURN_IF_ERROR(want_roles(q, a.dims.kernel_input_feature, a.dims.kernel_output_feature,
                                    a.dims.kernel_spatial, x.rank(), "kernel"));
  HEDDLE_RETURN_IF_ERROR(want_roles(q, a.dims.output_batch, a.dims.output_feature,
                                    a.dims.output_spatial, x.rank(), "output"));
  if (static_cast<int64_t>(spatial) != x.rank() - 2)
    return shape_error(q, "a window of {} dimensions for {}", spatial, text(x));
  HEDDLE_RETURN_IF_ERROR(check_groups(q, a));
  HEDDLE_ASSIGN_OR_RETURN(Type type, product_type(q));

  std::vector<Dim> out(x.dims().size());
  Dim batch = x.dims()[a.dims.input_batch];
  if (a.batch_group_count > 1 && !unbounded(batch))
    batch = resized(batch, batch.size / a.batch_group_count);
  out[a.dims.output_batch] = batch;
  out[a.dims.output_feature] = kernel.dims()[a.dims.kernel_output_feature];
  for (size_t i = 0; i < spatial; ++i) {
    const Dim& dim = x.dims()[a.dims.input_spatial[i]];
    const Dim& taps = kernel.dims()[a.dims.kernel_spatial[i]];
    if (!agree(taps, Dim(a.window.dims[i].size)))
      return shape_error(q, "window size {} and kernel dim {} differ (operand 1 axis {})",
                         a.window.dims[i].size, text(taps), a.dims.kernel_spatial[i]);
    HEDDLE_ASSIGN_OR_RETURN(int64_t extent,
                            window_extent(q, unbounded(dim) ? 1 : dim.size, a.window.dims[i], i));
    out[a.dims.output_spatial[i]] = resized(dim, extent);
  }
  return Shape(type, std::move(out));
}

}  // namespace heddle::hlo
