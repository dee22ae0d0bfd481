#include "kernel/interp_program.h"

#include <algorithm>

#include "kernel/blocks.h"
#include "kernel/lanes.h"

namespace heddle::kernel {
namespace {

class Compiler {
 public:
  Compiler(const Kernel& kernel, const std::vector<int64_t>& dims)
      : kernel_(kernel), dims_(dims), widths_(lane_widths(kernel)) {}

  InterpProgram run() {
    slots_.resize(kernel_.exprs().size());
    for (size_t i = 0; i < kernel_.exprs().size(); ++i) place_leaf(ExprId(i));
    for (size_t i = 0; i < kernel_.vars.size(); ++i) {
      program_.var_slots.push_back(new_slot(widths_.var[i]));
    }
    program_.var_widths = widths_.var;
    temporaries_ = temporaries_end_ = static_cast<uint32_t>(program_.cells.size());
    for (const Phase& phase : kernel_.phases) {
      auto& groups = program_.phases.emplace_back();
      for (const Group& group : phase.groups) groups.push_back(compile_group(group));
    }
    program_.cells.resize(temporaries_end_);
    return std::move(program_);
  }

 private:
  Slot new_slot(int width) {
    Slot slot{static_cast<uint32_t>(program_.cells.size()), width == 0 ? 0 : 1};
    program_.cells.resize(program_.cells.size() + static_cast<size_t>(std::max(1, width)));
    return slot;
  }

  void place_leaf(ExprId id) {
    const Expr& expr = kernel_.expr(id);
    if (expr.op != Op::constant && expr.op != Op::dim) return;
    Slot slot = new_slot(0);
    slots_[id.index()] = slot;
    if (expr.op == Op::constant) {
      program_.cells[slot.at] = static_cast<uint64_t>(expr.imm);
    } else if (expr.imm >= 0 && expr.imm < static_cast<int64_t>(dims_.size())) {
      program_.cells[slot.at] = static_cast<uint64_t>(dims_[static_cast<size_t>(expr.imm)]);
    }
  }

  GroupPlan compile_group(const Group& group) {
    GroupPlan plan;
    for (const GridDim& dim : group.grid) {
      plan.extents.push_back(std::max<int64_t>(0, evaluate_extent(kernel_, dim.extent, dims_)));
      plan.tasks *= plan.extents.back();
      plan.vars.push_back(program_.var_slots[dim.var.index()]);
    }
    plan.body = compile_block(group.body);
    return plan;
  }

  std::vector<Node> compile_block(const std::vector<Stmt>& body) {
    std::vector<Node> nodes;
    for (const Stmt& stmt : body) nodes.push_back(compile_stmt(stmt));
    return nodes;
  }

  Node compile_stmt(const Stmt& stmt) {
    stmt_ = &stmt;
    Node node;
    node.stmt = &stmt;
    node.begin = static_cast<uint32_t>(program_.instrs.size());
    uint32_t next = temporaries_;
    for (ExprId id : reachable(kernel_, expressions(stmt))) compile_node(id, next);
    temporaries_end_ = std::max(temporaries_end_, next);
    node.end = static_cast<uint32_t>(program_.instrs.size());
    if (stmt.extent.valid()) node.extent = slot(stmt.extent);
    if (stmt.value.valid()) node.value = slot(stmt.value);
    if (stmt.mask.valid()) node.mask = slot(stmt.mask);
    if (stmt.var.valid()) node.var = program_.var_slots[stmt.var.index()];
    if (stmt.kind == StmtKind::mma) {
      node.mma = compile_mma(stmt);
    } else if (stmt.buffer.valid()) {
      node.access = add_access(stmt.buffer, stmt.indices);
    }
    if (stmt.source.valid()) node.source = add_access(stmt.source, stmt.source_indices);
    if (stmt.fragments.size() == 1)
      node.source = add_access(stmt.fragments[0], stmt.source_indices);
    node.meets = meets_block(stmt);
    node.body = compile_block(stmt.body);
    node.otherwise = compile_block(stmt.otherwise);
    return node;
  }

  uint32_t compile_mma(const Stmt& stmt) {
    MmaPlan plan;
    plan.mma = find_mma(stmt.name);
    auto at = stmt.indices.begin();
    for (size_t i = 0; i < 4; ++i) {
      auto leading = static_cast<int64_t>(kernel_.buffer(stmt.fragments[i]).extents.size()) - 1;
      plan.access[i] = add_access(stmt.fragments[i], {at, at + leading});
      at += leading;
    }
    program_.mmas.push_back(plan);
    return static_cast<uint32_t>(program_.mmas.size() - 1);
  }

  uint32_t add_access(BufferId buffer, const std::vector<ExprId>& indices) {
    AccessPlan plan{buffer, {}, stmt_, 0};
    for (ExprId id : indices) plan.indices.push_back(slot(id));
    program_.accesses.push_back(std::move(plan));
    return static_cast<uint32_t>(program_.accesses.size() - 1);
  }

  Slot slot(ExprId id) const {
    const Expr& expr = kernel_.expr(id);
    return expr.op == Op::var ? program_.var_slots[expr.var.index()] : slots_[id.index()];
  }

  void compile_node(ExprId id, uint32_t& next) {
    const Expr& expr = kernel_.expr(id);
    if (expr.op == Op::constant || expr.op == Op::dim || expr.op == Op::var) return;
    int width = widths_.expr[id.index()];
    Instr instr;
    instr.op = expr.op;
    instr.n = std::max(1, width);
    instr.varying = width != 0;
    instr.dst = next;
    instr.imm = expr.imm;
    instr.to = expr.type;
    slots_[id.index()] = {next, width == 0 ? 0 : 1};
    next += static_cast<uint32_t>(instr.n);
    if (expr.op == Op::load) {
      compile_load(expr, instr);
    } else {
      Slot* operands[] = {&instr.a, &instr.b, &instr.c};
      for (size_t i = 0; i < expr.operands.size(); ++i) *operands[i] = slot(expr.operands[i]);
      instr.from = kernel_.expr(expr.operands[0]).type;
      choose_kind(expr, instr);
    }
    program_.instrs.push_back(instr);
  }

  void compile_load(const Expr& expr, Instr& instr) {
    instr.kind = Instr::Kind::load;
    instr.guarded = expr.guarded;
    std::vector<ExprId> indices = expr.operands;
    if (expr.guarded) {
      instr.b = slot(indices.back());
      instr.a = slot(indices[indices.size() - 2]);
      indices.resize(indices.size() - 2);
    }
    instr.access = add_access(expr.buffer, indices);
  }

  void choose_kind(const Expr& expr, Instr& instr) {
    switch (expr.op) {
      case Op::convert:
        instr.kind = Instr::Kind::convert;
        return;
      case Op::bitcast:
        instr.kind = Instr::Kind::bitcast;
        return;
      case Op::lane:
        instr.kind = Instr::Kind::lane;
        return;
      case Op::shuffle_xor:
        instr.kind = Instr::Kind::shuffle;
        return;
      case Op::dot:
        instr.kind = Instr::Kind::dot;
        return;
      case Op::floor_div:
      case Op::floor_mod:
        instr.kind = Instr::Kind::floors;
        break;
      default:
        break;
    }
    instr.function = lane_function(expr.op, instr.from);
  }

  const Kernel& kernel_;
  const std::vector<int64_t>& dims_;
  LaneWidths widths_;
  InterpProgram program_;
  std::vector<Slot> slots_;  // by ExprId, of the statement being compiled
  uint32_t temporaries_ = 0, temporaries_end_ = 0;
  const Stmt* stmt_ = nullptr;
};

}  // namespace

InterpProgram make_program(const Kernel& kernel, const std::vector<int64_t>& dims) {
  return Compiler(kernel, dims).run();
}

}  // namespace heddle::kernel
