#include "compiler/shared_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include "kernel/verify.h"

namespace heddle::compiler {
namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;

constexpr size_t kMostDims = 24;

bool divides(Op op) {
  return op == Op::div || op == Op::rem || op == Op::floor_div || op == Op::floor_mod ||
         op == Op::shl || op == Op::shr_arithmetic || op == Op::shr_logical || op == Op::mulhi;
}

// Calls rewrite(&id) for each expression of the statement that may be anything.
void for_each_open(const Kernel& kernel, Stmt& stmt, const std::function<void(ExprId*)>& rewrite) {
  const bool known_trips =
      stmt.kind == StmtKind::loop && stmt.loop != LoopKind::serial && stmt.loop != LoopKind::vector;
  if (stmt.extent.valid() && !known_trips) rewrite(&stmt.extent);
  for (ExprId* id : {&stmt.value, &stmt.mask})
    if (id->valid()) rewrite(id);
  const bool in_registers =
      stmt.buffer.valid() && (kernel.buffer(stmt.buffer).space == kernel::Space::reg ||
                              kernel.buffer(stmt.buffer).space == kernel::Space::fragment);
  if (!in_registers)
    for (ExprId& id : stmt.indices) rewrite(&id);
  for (ExprId& id : stmt.source_indices) rewrite(&id);
}

void for_each_statement(std::vector<Stmt>& body, const std::function<void(Stmt&)>& visit) {
  for (Stmt& stmt : body) {
    visit(stmt);
    for_each_statement(stmt.body, visit);
    for_each_statement(stmt.otherwise, visit);
  }
}

void for_each_expression(Kernel& kernel, const std::function<void(ExprId*)>& rewrite) {
  for (kernel::Phase& phase : kernel.phases) {
    for (kernel::Group& group : phase.groups) {
      for (kernel::GridDim& dim : group.grid) rewrite(&dim.extent);
      for_each_statement(group.body, [&](Stmt& stmt) { for_each_open(kernel, stmt, rewrite); });
    }
  }
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
    for_each_expression(kernel, [&](ExprId* id) { *id = rewritten(*id); });
    return std::move(result_);
  }

 private:
  // 0 and 1 are more often a form than an extent.
  static constexpr int64_t kLeast = 2;

  int64_t open(int64_t value) {
    result_.dims.push_back(value);
    result_.kernel.dims.push_back(fmt::format("n{}", result_.dims.size() - 1));
    return static_cast<int64_t>(result_.dims.size()) - 1;
  }

  // Each place where a number stands is a dimension of its own, also where two places share a node:
  // in another kernel the numbers may differ.
  ExprId rewritten(ExprId id) {
    if (!id.valid()) return id;
    Expr expr = result_.kernel.expr(id);
    if (expr.op == Op::constant) {
      if (expr.type != tensor::Type::s64 || expr.imm < kLeast) return id;
      return result_.kernel.dim(open(expr.imm));
    }
    if (++visited_ > kMostVisits) return id;
    size_t first = 0, end = expr.operands.size();
    if (divides(expr.op)) end = 1;
    if (expr.op == Op::load && result_.kernel.buffer(expr.buffer).space == kernel::Space::reg)
      first = expr.guarded ? expr.operands.size() - 2 : expr.operands.size();
    for (size_t i = first; i < end; ++i) expr.operands[i] = rewritten(expr.operands[i]);
    return result_.kernel.add(std::move(expr));
  }

  static constexpr int64_t kMostVisits = 1 << 16;
  OpenExtents result_;
  int64_t visited_ = 0;
};

// The dimensions of a form as numbers, or as dimensions of the shared kernel.
struct Bound {
  bool is_number = false;
  int64_t value = 0;  // the number, or which dimension
  int64_t times = 1;  // the dimension so many times
};

class Closer {
 public:
  Closer(const Kernel& form, std::vector<Bound> bounds, size_t dims)
      : kernel_(form), bounds_(std::move(bounds)) {
    kernel_.dims.clear();
    for (size_t i = 0; i < dims; ++i) kernel_.dims.push_back(fmt::format("n{}", i));
  }

  Kernel run() {
    for (kernel::Buffer& buffer : kernel_.buffers) {
      for (int64_t& extent : buffer.extents) {
        if (extent >= 0) continue;
        const Bound& bound = bounds_[static_cast<size_t>(-1 - extent)];
        extent = bound.is_number ? bound.value : -1 - bound.value;
      }
    }
    for_each_expression(kernel_, [&](ExprId* id) { *id = rewritten(*id); });
    return std::move(kernel_);
  }

 private:
  ExprId rewritten(ExprId id) {
    if (!id.valid()) return id;
    if (auto known = done_.find(id.value); known != done_.end()) return known->second;
    Expr expr = kernel_.expr(id);
    ExprId result;
    if (expr.op == Op::dim) {
      const Bound& bound = bounds_[static_cast<size_t>(expr.imm)];
      result = bound.is_number ? kernel_.constant(bound.value) : kernel_.dim(bound.value);
      if (bound.times != 1) result = kernel_.binary(Op::mul, result, kernel_.constant(bound.times));
    } else {
      for (ExprId& operand : expr.operands) operand = rewritten(operand);
      result = kernel_.add(std::move(expr));
    }
    done_.emplace(id.value, result);
    return result;
  }

  Kernel kernel_;
  std::vector<Bound> bounds_;
  std::unordered_map<uint32_t, ExprId> done_;
};

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
  result.kernel = Closer(form, std::move(bounds), dims.size()).run();
  if (!kernel::verify(result.kernel)) return std::nullopt;
  return result;
}

}  // namespace heddle::compiler
