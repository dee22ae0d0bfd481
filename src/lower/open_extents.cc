// Gives kernels that are identical except for extents and strides one form: extents of loops, grids
// and global buffers, and numbers in indices and comparisons, become run-time dimensions. Numbers
// that code generation must know stay: lanes, loops whose lanes read each other, unrolled loops,
// register indices, divisors.

#include <algorithm>
#include <optional>

#include "kernel/lanes.h"
#include "kernel/rewriter.h"
#include "kernel/verify.h"
#include "lower/passes.h"

namespace heddle::lower {

namespace {

using kernel::Expr;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;

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
  explicit Opener(Kernel* kernel) : k_(*kernel) {}

  // Returns the values of the new dimensions.
  std::vector<int64_t> run() {
    for (kernel::Buffer& buffer : k_.buffers) {
      if (buffer.space != kernel::Space::global) continue;
      for (int64_t& extent : buffer.extents)
        if (extent >= kLeast) extent = -1 - open(extent);
    }
    Rewriter opening(&k_);
    // Each occurrence of a number is a separate dimension, even if two share a node: in another
    // kernel the numbers may differ.
    opening.shares = false;
    int64_t visited = 0;
    opening.instead = [&](ExprId id, const Expr& expr) -> std::optional<ExprId> {
      if (expr.op == Op::constant && expr.type == tensor::Type::s64 && expr.imm >= kLeast)
        return k_.dim(open(expr.imm));
      if (expr.op == Op::constant || ++visited > kMostVisits) return id;
      return std::nullopt;
    };
    opening.keeps_operand = [&](const Expr& of, size_t operand) {
      if (divides(of.op)) return operand != 0;
      if (of.op != Op::load || k_.buffer(of.buffer).space != kernel::Space::reg) return false;
      return operand + (of.guarded ? 2u : 0u) < of.operands.size();
    };
    opening.keeps_part = [&](const Stmt& stmt, Rewriter::Part part) {
      if (part == Rewriter::Part::extent)
        return stmt.loop != LoopKind::serial &&
               (stmt.loop != LoopKind::vector || lanes_work_together(k_, stmt.body));
      return part == Rewriter::Part::indices && in_registers(k_, stmt.buffer);
    };
    opening.run();
    return std::move(dims_);
  }

 private:
  // 0 and 1 are usually structural, not extents.
  static constexpr int64_t kLeast = 2;
  static constexpr int64_t kMostVisits = 1 << 16;

  int64_t open(int64_t value) {
    dims_.push_back(value);
    k_.dims.push_back(fmt::format("n{}", dims_.size() - 1));
    return static_cast<int64_t>(dims_.size()) - 1;
  }

  Kernel& k_;
  std::vector<int64_t> dims_;
};

}  // namespace

Result<bool> open_extents(Kernel& kernel, const Context& context) {
  if (!kernel.dims.empty()) return false;
  Kernel open = kernel;
  std::vector<int64_t> dims = Opener(&open).run();
  if (dims.empty() || !kernel::verify(open)) return false;
  kernel = std::move(open);
  if (context.dims) *context.dims = std::move(dims);
  return true;
}

}  // namespace heddle::lower
