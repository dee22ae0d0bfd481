// Builder: broadcasting by the rules of HLO and of numpy, and the functions that build on it.
#include <algorithm>

#include "hlo/builder.h"
#include "hlo/shape_inference.h"
#include "hlo/shape_rules.h"

namespace heddle::hlo {
namespace {

// Dimensions of a and b after numpy broadcasting, leaving out the last `skip` of each; empty with
// `bad` set if they are incompatible.
std::vector<Dim> broadcast_dims(const Shape& a, const Shape& b, int64_t skip, bool& bad) {
  const int64_t ra = a.rank() - skip, rb = b.rank() - skip, rank = std::max(ra, rb);
  std::vector<Dim> dims;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t da = d - (rank - ra), db = d - (rank - rb);
    const Dim x = da >= 0 ? a.dims()[da] : Dim(1), y = db >= 0 ? b.dims()[db] : Dim(1);
    const bool x_one = x.size == 1 && !x.dynamic, y_one = y.size == 1 && !y.dynamic;
    if (!x_one && !y_one && !agree(x, y)) bad = true;
    dims.push_back(x_one ? y : y_one ? x : merged(x, y));
  }
  return dims;
}

Error broadcast_error(std::string_view what, const Shape& a, const Shape& b) {
  return {ErrorKind::shape,
          fmt::format("{}: {} and {} do not broadcast (operands 0 and 1)", what, text(a), text(b))};
}

}  // namespace

Instr* Builder::add_broadcast(Instr* x, std::vector<Dim> dims, const Ints& dimensions) {
  const Shape shape(x->shape().type(), std::move(dims));
  return make(Opcode::broadcast, {x}, DimensionsAttrs{dimensions}, {}, &shape);
}

Instr* Builder::add_reshape(Instr* x, std::vector<Dim> dims) {
  const Shape shape(x->shape().type(), std::move(dims));
  return make(Opcode::reshape, {x}, ReshapeAttrs{}, {}, &shape);
}

Instr* Builder::broadcast(Instr* x, const std::vector<int64_t>& extents, const Ints& dimensions) {
  if (!status_) return poison();
  if (!x->shape().is_array()) return make(Opcode::broadcast, {x});
  std::vector<Dim> dims(extents.begin(), extents.end());
  // A dynamic dimension remains dynamic in the result.
  for (size_t i = 0; i < dimensions.size() && i < x->shape().dims().size(); ++i) {
    const Dim& from = x->shape().dims()[i];
    const int64_t to = dimensions[i];
    if (to >= 0 && to < static_cast<int64_t>(dims.size()) && dims[to].size == from.size)
      dims[to] = from;
  }
  return add_broadcast(x, std::move(dims), dimensions);
}

Instr* Builder::broadcast_to(Instr* x, const std::vector<int64_t>& extents) {
  if (!status_) return poison();
  if (!x->shape().is_array()) return make(Opcode::broadcast, {x});
  std::vector<Dim> dims(extents.begin(), extents.end());
  const std::vector<Dim>& own = x->shape().dims();
  for (size_t i = 0; i < own.size() && i < dims.size(); ++i) {
    Dim& to = dims[dims.size() - 1 - i];
    const Dim& from = own[own.size() - 1 - i];
    if (from.size == to.size) to = from;
  }
  return stretch(x, dims);
}

Instr* Builder::stretch(Instr* x, const std::vector<Dim>& dims) {
  const std::vector<Dim>& own = x->shape().dims();
  const int64_t offset = static_cast<int64_t>(dims.size()) - static_cast<int64_t>(own.size());
  Ints dimensions;
  std::vector<Dim> kept;
  bool same = offset == 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) + offset;
    const bool repeated = at >= 0 && own[i].size == 1 && !own[i].dynamic && dims[at].size != 1;
    if (at < 0 || (!repeated && !agree(own[i], dims[at])))
      return fail(broadcast_error("broadcast", x->shape(), Shape(x->shape().type(), dims)));
    same = same && !repeated;
    if (repeated) continue;
    kept.push_back(own[i]);
    dimensions.push_back(at);
  }
  if (same) return x;
  // HLO broadcasts whole dimensions only, so a reshape first removes stretched dimensions of extent
  // 1.
  if (kept.size() != own.size()) x = add_reshape(x, std::move(kept));
  return add_broadcast(x, dims, dimensions);
}

Instr* Builder::reshape(Instr* x, const std::vector<int64_t>& extents) {
  if (!status_) return poison();
  const Shape& from = x->shape();
  if (!from.is_array()) return make(Opcode::reshape, {x});
  std::vector<Dim> dims(extents.begin(), extents.end());
  // Dimensions before the first and after the last changed one pass through with their symbols.
  const size_t common = std::min(dims.size(), from.dims().size());
  size_t front = 0, back = 0;
  for (; front < common && dims[front].size == from.dims()[front].size; ++front)
    dims[front] = from.dims()[front];
  for (; back < common - front; ++back) {
    Dim& to = dims[dims.size() - 1 - back];
    const Dim& dim = from.dims()[from.dims().size() - 1 - back];
    if (to.size != dim.size) break;
    to = dim;
  }
  // If any dimension between them was dynamic, the outermost one there becomes dynamic.
  const bool dynamic = std::any_of(from.dims().begin() + front, from.dims().end() - back,
                                   [](const Dim& d) { return d.dynamic; });
  for (size_t i = front; dynamic && i < dims.size() - back; ++i) {
    if (dims[i].size == 1) continue;
    dims[i].dynamic = true;
    break;
  }
  return add_reshape(x, std::move(dims));
}

Instr* Builder::binary_broadcast(Opcode opcode, Instr* a, Instr* b) {
  if (!status_) return poison();
  if (!a->shape().is_array() || !b->shape().is_array()) return binary(opcode, a, b);
  bool bad = false;
  const std::vector<Dim> dims = broadcast_dims(a->shape(), b->shape(), 0, bad);
  if (bad) return fail(broadcast_error(opcode_text(opcode), a->shape(), b->shape()));
  Instr* left = stretch(a, dims);
  return binary(opcode, left, stretch(b, dims));
}

Instr* Builder::compare_broadcast(Direction direction, Instr* a, Instr* b) {
  if (!status_) return poison();
  if (!a->shape().is_array() || !b->shape().is_array()) return compare(direction, a, b);
  bool bad = false;
  const std::vector<Dim> dims = broadcast_dims(a->shape(), b->shape(), 0, bad);
  if (bad) return fail(broadcast_error("compare", a->shape(), b->shape()));
  Instr* left = stretch(a, dims);
  return compare(direction, left, stretch(b, dims));
}

Instr* Builder::matmul(Instr* a, Instr* b) {
  if (!status_) return poison();
  const Shape left = a->shape(), right = b->shape();
  if (!left.is_array() || !right.is_array() || left.rank() < 2 || right.rank() < 2)
    return fail({ErrorKind::shape, fmt::format("matmul: {} and {}, wanted ranks of 2 or more",
                                               text(left), text(right))});
  DotAttrs attrs;
  if (right.rank() == 2) {  // one matrix for all: its batch dimensions are rows
    attrs.lhs_contracting_dims = {left.rank() - 1};
    attrs.rhs_contracting_dims = {0};
    return dot(a, b, std::move(attrs));
  }
  bool bad = false;
  const std::vector<Dim> batch = broadcast_dims(left, right, 2, bad);
  if (bad) return fail(broadcast_error("matmul", left, right));
  std::vector<Dim> left_dims = batch, right_dims = batch;
  left_dims.insert(left_dims.end(), left.dims().end() - 2, left.dims().end());
  right_dims.insert(right_dims.end(), right.dims().end() - 2, right.dims().end());
  const int64_t rank = static_cast<int64_t>(left_dims.size());
  for (int64_t d = 0; d < rank - 2; ++d) attrs.lhs_batch_dims.push_back(d);
  attrs.rhs_batch_dims = attrs.lhs_batch_dims;
  attrs.lhs_contracting_dims = {rank - 1};
  attrs.rhs_contracting_dims = {rank - 2};
  a = stretch(a, left_dims);
  return dot(a, stretch(b, right_dims), std::move(attrs));
}

}  // namespace heddle::hlo
