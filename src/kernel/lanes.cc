#include "kernel/lanes.h"

#include <algorithm>
#include <unordered_set>

namespace heddle::kernel {
namespace {

class Widths {
 public:
  explicit Widths(const Kernel& kernel) : kernel_(kernel) {
    result_.expr.resize(kernel.exprs().size());
    result_.var.resize(kernel.vars.size());
    known_.resize(kernel.exprs().size());
  }

  LaneWidths run() {
    for (const Phase& phase : kernel_.phases) {
      for (const Group& group : phase.groups) visit(group.body);
    }
    return std::move(result_);
  }

 private:
  void visit(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      for (ExprId id : expressions(stmt)) width(id);
      bool binds = stmt.var.index() < kernel_.vars.size();
      if (binds && stmt.kind == StmtKind::loop && is_lane_loop(stmt.loop)) {
        result_.var[stmt.var.index()] = stmt.lanes;
      } else if (binds && stmt.kind == StmtKind::let && stmt.value.valid()) {
        result_.var[stmt.var.index()] = result_.expr[stmt.value.index()];
      }
      visit(stmt.body);
      visit(stmt.otherwise);
    }
  }

  // A variable is bound before any statement that reads it, so a node is final when first met.
  void width(ExprId root) {
    if (known_[root.index()]) return;
    std::vector<ExprId> stack = {root};
    while (!stack.empty()) {
      ExprId id = stack.back();
      const Expr& expr = kernel_.expr(id);
      size_t waiting = stack.size();
      for (ExprId operand : expr.operands) {
        if (!known_[operand.index()]) stack.push_back(operand);
      }
      if (stack.size() != waiting) continue;
      stack.pop_back();
      known_[id.index()] = true;
      result_.expr[id.index()] = own_width(expr);
    }
  }

  int own_width(const Expr& expr) const {
    if (expr.op == Op::lane) return 0;
    int lanes = 0;
    if (expr.op == Op::var && expr.var.index() < kernel_.vars.size()) {
      lanes = result_.var[expr.var.index()];
    }
    if (expr.op == Op::load && expr.buffer.index() < kernel_.buffers.size()) {
      lanes = kernel_.buffer(expr.buffer).lanes;
    }
    for (ExprId operand : expr.operands) lanes = std::max(lanes, result_.expr[operand.index()]);
    return lanes;
  }

  const Kernel& kernel_;
  LaneWidths result_;
  std::vector<bool> known_;
};

}  // namespace

LaneWidths lane_widths(const Kernel& kernel) { return Widths(kernel).run(); }

std::vector<ExprId> reachable(const Kernel& kernel, const std::vector<ExprId>& roots) {
  std::unordered_set<uint32_t> seen;
  std::vector<ExprId> result;
  for (ExprId id : roots) {
    if (id.valid() && seen.insert(id.value).second) result.push_back(id);
  }
  for (size_t i = 0; i < result.size(); ++i) {
    for (ExprId operand : kernel.expr(result[i]).operands) {
      if (seen.insert(operand.value).second) result.push_back(operand);
    }
  }
  std::sort(result.begin(), result.end());  // operands have smaller ids
  return result;
}

bool lanes_work_together(const Kernel& kernel, const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    for (ExprId id : reachable(kernel, expressions(stmt)))
      if (kernel.expr(id).op == Op::lane || kernel.expr(id).op == Op::shuffle_xor) return true;
    return lanes_work_together(kernel, stmt.body) || lanes_work_together(kernel, stmt.otherwise);
  });
}

}  // namespace heddle::kernel
