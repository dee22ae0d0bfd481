#include "lower/share_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "kernel/rewriter.h"
#include "kernel/verify.h"

namespace heddle::lower {
namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::Op;

constexpr size_t kMostDims = 24;

// A dimension of a form as a number, or as a multiple of a dimension of the shared kernel.
struct Bound {
  bool is_number = false;
  int64_t value = 0;  // the number, or which dimension
  int64_t times = 1;  // the multiple
};

Kernel close_extents(const Kernel& form, const std::vector<Bound>& bounds, size_t dims) {
  Kernel kernel = form;
  kernel.dims.clear();
  for (size_t i = 0; i < dims; ++i) kernel.dims.push_back(fmt::format("n{}", i));
  for (kernel::Buffer& buffer : kernel.buffers) {
    for (int64_t& extent : buffer.extents) {
      if (extent >= 0) continue;
      const Bound& bound = bounds[static_cast<size_t>(-1 - extent)];
      extent = bound.is_number ? bound.value : -1 - bound.value;
    }
  }
  kernel::Rewriter closing(&kernel);
  closing.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
    if (expr.op != Op::dim) return std::nullopt;
    const Bound& bound = bounds[static_cast<size_t>(expr.imm)];
    const ExprId value = bound.is_number ? kernel.constant(bound.value) : kernel.dim(bound.value);
    return bound.times == 1 ? value : kernel.binary(Op::mul, value, kernel.constant(bound.times));
  };
  closing.run();
  return kernel;
}

// The values of one dimension in all kernels.
using Column = std::vector<int64_t>;

bool is_times(const Column& column, const Column& base, int64_t* times) {
  *times = column[0] / base[0];
  for (size_t i = 0; i < column.size(); ++i)
    if (*times * base[i] != column[i]) return false;
  return *times > 1;
}

// A column that is a multiple of another needs no dimension of its own: rows of an unrolled loop
// are one, two, three strides away.
std::map<Column, Bound> find_dims(const std::vector<Column>& columns,
                                  const std::vector<bool>& whole, std::vector<Column>* dims) {
  std::map<Column, bool> distinct;  // whether it has to be a dimension itself
  for (size_t d = 0; d < columns.size(); ++d) {
    const Column& column = columns[d];
    const bool alike =
        std::adjacent_find(column.begin(), column.end(), std::not_equal_to<>()) == column.end();
    if (!alike) distinct[column] = distinct[column] || whole[d];
  }
  std::map<Column, Bound> result;
  for (const auto& [column, is_whole] : distinct) {  // the smallest first
    Bound bound{false, static_cast<int64_t>(dims->size()), 1};
    for (size_t b = 0; !is_whole && b < dims->size() && bound.times == 1; ++b) {
      int64_t times;
      if (is_times(column, (*dims)[b], &times)) bound = {false, static_cast<int64_t>(b), times};
    }
    if (bound.times == 1) dims->push_back(column);
    result.emplace(column, bound);
  }
  return result;
}

}  // namespace

OpenExtents opened(const Kernel& kernel, const OpenPass& pass) {
  OpenExtents result{kernel, {}};
  Context context;
  context.dims = &result.dims;
  pass(&result.kernel, context);
  return result;
}

std::optional<SharedExtents> share_extents(const Kernel& form,
                                           const std::vector<std::vector<int64_t>>& values) {
  std::vector<Column> columns(form.dims.size()), dims;
  for (size_t d = 0; d < columns.size(); ++d)
    for (const std::vector<int64_t>& one : values) columns[d].push_back(one.at(d));
  std::vector<bool> whole(columns.size(), false);
  for (const kernel::Buffer& buffer : form.buffers)
    for (int64_t extent : buffer.extents)
      if (extent < 0) whole[static_cast<size_t>(-1 - extent)] = true;
  const std::map<Column, Bound> found = find_dims(columns, whole, &dims);
  if (dims.size() > kMostDims) return std::nullopt;
  std::vector<Bound> bounds;
  for (const Column& column : columns) {
    const auto dim = found.find(column);
    bounds.push_back(dim != found.end() ? dim->second : Bound{true, column[0], 1});
  }
  SharedExtents result;
  result.dims.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    for (const Column& dim : dims) result.dims[i].push_back(dim[i]);
  result.kernel = close_extents(form, bounds, dims.size());
  if (!kernel::verify(result.kernel)) return std::nullopt;
  return result;
}

}  // namespace heddle::lower
