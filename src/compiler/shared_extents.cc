#include "compiler/shared_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "kernel/rewriter.h"
#include "kernel/verify.h"

namespace heddle::compiler {
namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;

constexpr size_t kMostDims = 24;

bool divides(Op op) {
  return op == Op::div || op == Op::rem || op == Op::floor_div || op == Op::floor_mod ||
         op == Op::shl || op == Op::shr_arithmetic || op == Op::shr_logical || op == Op::mulhi;
}

bool in_registers(const Kernel& kernel, kernel::BufferId buffer) {
  return buffer.valid() && (kernel.buffer(buffer).space == kernel::Space::reg ||
                            kernel.buffer(buffer).space == kernel::Space::fragment);
}

class Opener {
 public:
  explicit Opener(const Kernel& kernel) { result_.kernel = kernel; }

  OpenExtents run() {
    Kernel& kernel = result_.kernel;
    for (kernel::Buffer& buffer : kernel.buffers) {
      if (buffer.space != kernel::Space::global) continue;
      for (int64_t& extent : buffer.extents)
        if (extent >= kLeast) extent = -1 - open(extent);
    }
    using Part = kernel::Rewriter::Part;
    kernel::Rewriter opening(&kernel);
    // Each place where a number stands is a dimension of its own, also where two places share a
    // node: in another kernel the numbers may differ.
    opening.shares = false;
    int64_t visited = 0;
    opening.instead = [&](ExprId id, const Expr& expr) -> std::optional<ExprId> {
      if (expr.op == Op::constant && expr.type == tensor::Type::s64 && expr.imm >= kLeast)
        return kernel.dim(open(expr.imm));
      if (expr.op == Op::constant || ++visited > kMostVisits) return id;
      return std::nullopt;
    };
    opening.keeps_operand = [&](const Expr& of, size_t operand) {
      if (divides(of.op)) return operand != 0;
      if (of.op != Op::load || kernel.buffer(of.buffer).space != kernel::Space::reg) return false;
      return operand + (of.guarded ? 2u : 0u) < of.operands.size();
    };
    opening.keeps_part = [&](const Stmt& stmt, Part part) {
      if (part == Part::extent)
        return stmt.loop != LoopKind::serial && stmt.loop != LoopKind::vector;
      return part == Part::indices && in_registers(kernel, stmt.buffer);
    };
    opening.run();
    return std::move(result_);
  }

 private:
  // 0 and 1 are more often a form than an extent.
  static constexpr int64_t kLeast = 2;
  static constexpr int64_t kMostVisits = 1 << 16;

  int64_t open(int64_t value) {
    result_.dims.push_back(value);
    result_.kernel.dims.push_back(fmt::format("n{}", result_.dims.size() - 1));
    return static_cast<int64_t>(result_.dims.size()) - 1;
  }

  OpenExtents result_;
};

// The dimensions of a form as numbers, or as dimensions of the shared kernel.
struct Bound {
  bool is_number = false;
  int64_t value = 0;  // the number, or which dimension
  int64_t times = 1;  // the dimension so many times
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

// What the kernels have at one place.
using Column = std::vector<int64_t>;

bool is_times(const Column& column, const Column& base, int64_t* times) {
  *times = column[0] / base[0];
  for (size_t i = 0; i < column.size(); ++i)
    if (*times * base[i] != column[i]) return false;
  return *times > 1;
}

// Columns that are another one a number of times need no dimension of their own: rows of an
// unrolled loop lie once, twice, three times a stride away.
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

OpenExtents open_extents(const Kernel& kernel) {
  HEDDLE_CHECK(kernel.dims.empty(), "{} has run-time dimensions already", kernel.name);
  return Opener(kernel).run();
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

}  // namespace heddle::compiler
