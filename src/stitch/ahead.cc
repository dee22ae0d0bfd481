#include "stitch/ahead.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <unordered_set>

namespace heddle::stitch {

namespace {

using kernel::BufferId;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;

constexpr int64_t kLeastShare = 1024;  // bytes of a task: less is found by the processor itself

bool uses(const Kernel& k, ExprId id, VarId var) {
  const kernel::Expr& expr = k.expr(id);
  if (expr.op == Op::var) return expr.var == var;
  return std::any_of(expr.operands.begin(), expr.operands.end(),
                     [&](ExprId operand) { return uses(k, operand, var); });
}

// How far an index moves with the variable; nothing where that is not the same everywhere.
std::optional<int64_t> factor_of(const Kernel& k, ExprId id, VarId var) {
  const kernel::Expr& expr = k.expr(id);
  if (expr.op == Op::var) return expr.var == var ? 1 : 0;
  if (expr.op == Op::add || expr.op == Op::sub) {
    const auto a = factor_of(k, expr.operands[0], var), b = factor_of(k, expr.operands[1], var);
    if (!a || !b) return std::nullopt;
    return expr.op == Op::add ? *a + *b : *a - *b;
  }
  if (expr.op == Op::mul)
    for (size_t i = 0; i < 2; ++i)
      if (const kernel::Expr& by = k.expr(expr.operands[i]); by.op == Op::constant)
        if (const auto factor = factor_of(k, expr.operands[1 - i], var)) return *factor * by.imm;
  return uses(k, id, var) ? std::nullopt : std::optional<int64_t>(0);
}

struct Access {
  BufferId buffer;
  ExprId index;
};

class Ahead {
 public:
  Ahead(Kernel* k, const target::Target& target) : k_(*k), target_(target) {}

  // `tasks`: how many steps the variable and those around it make.
  void run(std::vector<Stmt>* body, VarId var, int64_t tasks) {
    std::vector<Stmt*> sweeps;
    for (Stmt& stmt : *body)
      if (stmt.kind == StmtKind::loop && !accesses(stmt).empty()) sweeps.push_back(&stmt);
    if (sweeps.size() < 2) return;
    std::map<uint32_t, int64_t> steps;  // of arrays that are read before the last sweep
    for (size_t i = 0; i + 1 < sweeps.size(); ++i)
      for (const Access& access : accesses(*sweeps[i])) note(access, var, tasks, &steps);
    if (steps.empty() || !fits(steps, tasks)) return;
    add_to(sweeps.back(), var, steps);
  }

 private:
  int64_t elems(BufferId id) const {
    const kernel::Buffer& buffer = k_.buffer(id);
    return buffer.extents.size() == 1 ? buffer.extents[0] : -1;
  }

  int64_t bytes(BufferId id) const { return elems(id) * tensor::type_bytes(k_.buffer(id).type); }

  void note(const Access& access, VarId var, int64_t tasks, std::map<uint32_t, int64_t>* steps) {
    if (k_.buffer(access.buffer).access != kernel::Access::in) return;
    const auto step = factor_of(k_, access.index, var);
    const int64_t all = bytes(access.buffer);
    const int64_t l2 = target_.caches.size() > 1 ? target_.caches[1].bytes : 2 << 20;
    if (!step || *step <= 0 || all < 2 * l2 || all / tasks < kLeastShare) return;
    steps->emplace(access.buffer.value, *step);
  }

  bool fits(const std::map<uint32_t, int64_t>& steps, int64_t tasks) {
    share_ = 0;
    for (const auto& [buffer, step] : steps) share_ += bytes(BufferId(buffer)) / tasks;
    return target_.caches.size() > 1 &&
           2 * share_ + k_.scratch_bytes <= target_.caches[1].bytes * 3 / 4;
  }

  // Loads and stores of flat arrays in memory, below a statement.
  std::vector<Access> accesses(const Stmt& root) const {
    std::vector<Access> result;
    std::unordered_set<uint32_t> seen;
    std::function<void(ExprId)> look = [&](ExprId id) {
      if (!seen.insert(id.value).second) return;
      const kernel::Expr& expr = k_.expr(id);
      if (expr.op == Op::load && is_memory(expr.buffer))
        result.push_back({expr.buffer, expr.operands[0]});
      for (ExprId operand : expr.operands) look(operand);
    };
    std::function<void(const Stmt&)> walk = [&](const Stmt& stmt) {
      if (stmt.kind == StmtKind::store && is_memory(stmt.buffer))
        result.push_back({stmt.buffer, stmt.indices[0]});
      for (ExprId id : expressions(stmt)) look(id);
      for (const Stmt& inner : stmt.body) walk(inner);
      for (const Stmt& inner : stmt.otherwise) walk(inner);
    };
    walk(root);
    return result;
  }

  bool is_memory(BufferId id) const {
    return k_.buffer(id).space == kernel::Space::global && elems(id) > 0;
  }

  // In every vector of the sweep that reads the array, or touches one of its size at its pace.
  void add_to(Stmt* stmt, VarId var, const std::map<uint32_t, int64_t>& steps) {
    if (stmt->kind != StmtKind::loop) return;
    if (stmt->loop != LoopKind::vector) {
      for (Stmt& inner : stmt->body) add_to(&inner, var, steps);
      return;
    }
    const std::vector<Access> all = accesses(*stmt);
    std::vector<Stmt> fetches;
    for (const auto& [number, step] : steps) {
      const BufferId buffer(number);
      const Access* best = nullptr;
      for (const Access& access : all) {
        if (elems(access.buffer) != elems(buffer) || factor_of(k_, access.index, var) != step ||
            factor_of(k_, access.index, stmt->var) != 1)
          continue;
        if (!best || access.buffer == buffer) best = &access;
      }
      if (!best) continue;
      Stmt fetch{StmtKind::prefetch};
      fetch.buffer = buffer;
      fetch.indices = {k_.binary(Op::add, best->index, k_.constant(step))};
      fetch.level = !target_.caches.empty() && 6 * share_ <= target_.caches[0].bytes ? 1 : 2;
      fetches.push_back(std::move(fetch));
    }
    stmt->body.insert(stmt->body.begin(), fetches.begin(), fetches.end());
  }

  Kernel& k_;
  const target::Target& target_;
  int64_t share_ = 0;  // bytes of one task
};

}  // namespace

void fetch_ahead(Kernel* kernel, kernel::Group* group, const target::Target& target) {
  Ahead ahead(kernel, target);
  int64_t tasks = 1;
  for (const kernel::GridDim& dim : group->grid) tasks *= kernel->expr(dim.extent).imm;
  if (!group->grid.empty()) ahead.run(&group->body, group->grid.back().var, tasks);
  for (Stmt& stmt : group->body) {
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial) continue;
    const kernel::Expr& trips = kernel->expr(stmt.extent);
    if (trips.op == Op::constant) ahead.run(&stmt.body, stmt.var, tasks * trips.imm);
  }
}

}  // namespace heddle::stitch
