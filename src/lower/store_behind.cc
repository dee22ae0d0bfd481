// Moves the last sweep of a row, which streams scratch past the caches, into the sweep that fills
// this scratch for the next row. Memory takes streamed lines more slowly than a core that only
// copies produces them, and is idle while a core computes: together they take little more than the
// longer of both. A task becomes several rows; the computation of its first row and the store of
// its last one are not overlapped. Nothing changes if the last sweep computes functions itself, if
// its scratch is not filled element by element, if rows are short or begin with much arithmetic, or
// if there would be too few tasks for the target's cores.

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_set>

#include "kernel/lanes.h"
#include "kernel/op_info.h"
#include "kernel/rewriter.h"
#include "lower/passes.h"

namespace heddle::lower {

namespace {

using kernel::BufferId;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Space;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using Block = std::vector<Stmt>;

constexpr int64_t kMostRows = 16, kTasksACore = 4;
// A row of fewer bytes is in the store buffer by the time that the next one is begun.
constexpr int64_t kLeastBytes = 3072;
constexpr int64_t kFunction = 10;  // instructions

class StoreBehind {
 public:
  StoreBehind(Kernel* kernel, kernel::Group* group) : k_(*kernel), group_(*group) {}

  bool run(const target::Target& target) {
    if (group_.grid.empty() || group_.body.size() < 2) return false;
    const int64_t rows = rows_a_task(target.cores);
    if (rows < 2 || !is_plain_copy(group_.body.back())) return false;
    Block row = group_.body;
    const Stmt last = std::move(row.back());
    row.pop_back();
    if (!find_scratch(last) || !is_filled_once(row, last)) return false;
    const kernel::Buffer& scratch = k_.buffer(BufferId(*scratch_.begin()));
    if (scratch.extents[0] * tensor::type_bytes(scratch.type) < kLeastBytes) return false;
    if (drains_beside_first(row)) return false;

    kernel::GridDim& dim = group_.grid.back();
    const VarId old = dim.var, task = k_.add_var(k_.var(old).name), r = k_.add_var("r");
    const ExprId first = k_.binary(Op::mul, k_.ref(task), k_.constant(rows));
    const ExprId here = k_.binary(Op::add, first, k_.ref(r));
    add_carried(row, last);
    Block steps;
    Rewriter moved(&k_);
    moved.replace(old, here);
    for (Stmt& stmt : row) {
      if (!stores(stmt)) {
        steps.push_back(moved.block({stmt})[0]);
        continue;
      }
      Rewriter copy(&k_);
      copy.fresh = true;
      copy.replace(old, here);
      Block joined;
      const std::vector<ExprId> before = read_carried(&joined);
      joined.push_back(copy.block({stmt})[0]);
      insert(last, old, here, before, &joined.back());
      steps.push_back(make_if(k_.compare(Op::gt, k_.ref(r), k_.constant(0)), std::move(joined),
                              moved.block({stmt})));
    }
    for (size_t i = 0; i < carried_.size(); ++i)
      steps.push_back(make_store(registers_[i], {k_.constant(0)}, k_.ref(carried_[i])));

    group_.body.clear();
    group_.body.push_back(make_loop(LoopKind::serial, r, k_.constant(rows), std::move(steps)));
    const std::vector<ExprId> after = read_carried(&group_.body);
    Rewriter behind(&k_);
    behind.replace(old, k_.binary(Op::add, first, k_.constant(rows - 1)));
    for (size_t i = 0; i < carried_.size(); ++i) behind.replace(carried_[i], after[i]);
    group_.body.push_back(behind.block({last})[0]);
    dim = {task, k_.constant(k_.expr(dim.extent).imm / rows)};
    return true;
  }

 private:
  // A divisor of the innermost grid dimension that leaves each core some tasks.
  int64_t rows_a_task(int cores) const {
    int64_t tasks = 1;
    for (const kernel::GridDim& dim : group_.grid) {
      if (k_.expr(dim.extent).op != Op::constant) return 1;
      tasks *= k_.expr(dim.extent).imm;
    }
    const int64_t inner = k_.expr(group_.grid.back().extent).imm;
    for (int64_t rows = std::min(kMostRows, tasks / (kTasksACore * cores)); rows > 1; --rows)
      if (inner % rows == 0) return rows;
    return 1;
  }

  // Whether a vector loop streams and computes no functions.
  bool is_plain_copy(const Stmt& loop) const {
    if (loop.kind != StmtKind::loop || loop.loop != LoopKind::vector) return false;
    bool streams = false;
    for (const Stmt& stmt : loop.body) {
      if (stmt.kind == StmtKind::store) {
        if (k_.buffer(stmt.buffer).space != Space::global || stmt.mask.valid()) return false;
        streams |= stmt.streaming;
      } else if (stmt.kind != StmtKind::let && stmt.kind != StmtKind::prefetch) {
        return false;
      }
      for (ExprId id : kernel::reachable(k_, expressions(stmt)))
        if (kernel::is_math(k_.expr(id).op)) return false;
    }
    return streams;
  }

  // Whether the sweep reads one scratch buffer, and only at the index of its own iteration.
  bool find_scratch(const Stmt& loop) {
    for (const Stmt& stmt : loop.body)
      for (ExprId id : kernel::reachable(k_, expressions(stmt))) {
        const kernel::Expr& expr = k_.expr(id);
        if (expr.op != Op::load) continue;
        const Space space = k_.buffer(expr.buffer).space;
        if (space == Space::global && k_.buffer(expr.buffer).access == kernel::Access::in) continue;
        if (space != Space::scratch || expr.guarded || expr.operands[0] != k_.ref(loop.var))
          return false;
        scratch_.insert(expr.buffer.value);
      }
    return scratch_.size() == 1;
  }

  bool stores(const Stmt& root) const {
    if (root.kind == StmtKind::store) return scratch_.contains(root.buffer.value);
    auto any = [&](const Block& body) {
      return std::any_of(body.begin(), body.end(), [&](const Stmt& stmt) { return stores(stmt); });
    };
    return any(root.body) || any(root.otherwise);
  }

  // Whether the next row begins with more arithmetic than the sweep that fills the scratch: this
  // already overlaps with the stores.
  bool drains_beside_first(const Block& row) const {
    int64_t first = 0, filling = 0;
    for (const Stmt& stmt : row) {
      if (first == 0) first = operations(stmt);
      if (stores(stmt)) filling = std::max(filling, operations(stmt));
    }
    return first > filling;
  }

  // Operations on one vector of a sweep, without index arithmetic.
  int64_t operations(const Stmt& root) const {
    std::unordered_set<uint32_t> seen;
    int64_t sum = 0;
    std::function<void(ExprId)> look = [&](ExprId id) {
      const kernel::Expr& expr = k_.expr(id);
      if (expr.op == Op::load || expr.operands.empty() || !seen.insert(id.value).second) return;
      sum += kernel::is_math(expr.op) ? kFunction : 1;
      for (ExprId operand : expr.operands) look(operand);
    };
    std::function<void(const Stmt&)> walk = [&](const Stmt& stmt) {
      if (stmt.value.valid()) look(stmt.value);
      for (const Stmt& inner : stmt.body) walk(inner);
    };
    if (root.kind == StmtKind::loop) walk(root);
    return sum;
  }

  // Whether loops outside branches fill the scratch, with one vector for each vector of the sweep.
  bool is_filled_once(const Block& row, const Stmt& last) const {
    int64_t points = 0;
    bool good = true;
    std::function<void(const Stmt&, int64_t)> walk = [&](const Stmt& stmt, int64_t times) {
      if (stmt.kind == StmtKind::loop) {
        const kernel::Expr& extent = k_.expr(stmt.extent);
        const bool known = extent.op == Op::constant;
        if (stmt.loop == LoopKind::vector && stores(stmt)) {
          good &= stmt.lanes == last.lanes && known;
          for (const Stmt& inner : stmt.body) good &= inner.body.empty();
          points += known ? times * extent.imm : 0;
        }
        for (const Stmt& inner : stmt.body) walk(inner, times * (known ? extent.imm : 0));
      } else if (stmt.kind == StmtKind::branch || stmt.kind == StmtKind::store) {
        good &= stmt.kind == StmtKind::store || !stores(stmt);
      }
    };
    for (const Stmt& stmt : row) {
      good &= !stores(stmt) || stmt.kind == StmtKind::loop;
      walk(stmt, 1);
    }
    const kernel::Expr& extent = k_.expr(last.extent);
    return good && extent.op == Op::constant && points == extent.imm;
  }

  // Named values of the row that the sweep reads are kept in registers for the next row.
  void add_carried(const Block& row, const Stmt& last) {
    std::unordered_set<uint32_t> read;
    for (const Stmt& stmt : last.body)
      for (ExprId id : kernel::reachable(k_, expressions(stmt)))
        if (k_.expr(id).op == Op::var) read.insert(k_.expr(id).var.value);
    for (const Stmt& stmt : row) {
      if (stmt.kind != StmtKind::let || !read.contains(stmt.var.value)) continue;
      kernel::Buffer buffer;
      buffer.name = "row_before";
      buffer.type = k_.var(stmt.var).type;
      buffer.extents = {1};
      buffer.space = Space::reg;
      carried_.push_back(stmt.var);
      registers_.push_back(k_.add_buffer(std::move(buffer)));
    }
  }

  std::vector<ExprId> read_carried(Block* block) {
    std::vector<ExprId> values;
    for (size_t i = 0; i < carried_.size(); ++i) {
      const VarId var = k_.add_var("before", k_.var(carried_[i]).type);
      block->push_back(make_let(var, k_.load(registers_[i], {k_.constant(0)})));
      values.push_back(k_.ref(var));
    }
    return values;
  }

  // Inserts the sweep's statements before the stores that overwrite its operands. Its prefetches
  // are ahead of the current row.
  void insert(const Stmt& last, VarId task, ExprId here, const std::vector<ExprId>& before,
              Stmt* into) {
    if (into->kind != StmtKind::loop) return;
    if (into->loop != LoopKind::vector) {
      for (Stmt& inner : into->body) insert(last, task, here, before, &inner);
      return;
    }
    const auto store = std::find_if(into->body.begin(), into->body.end(),
                                    [&](const Stmt& stmt) { return stores(stmt); });
    if (store == into->body.end()) return;
    Rewriter behind(&k_), ahead(&k_);
    behind.fresh = true;
    behind.replace(task, k_.binary(Op::add, here, k_.constant(-1)));
    ahead.replace(task, here);
    for (Rewriter* moved : {&behind, &ahead}) moved->replace(last.var, store->indices[0]);
    for (size_t i = 0; i < carried_.size(); ++i) behind.replace(carried_[i], before[i]);
    Block body;
    for (const Stmt& stmt : last.body)
      body.push_back((stmt.kind == StmtKind::prefetch ? ahead : behind).block({stmt})[0]);
    into->body.insert(into->body.begin(), body.begin(), body.end());
  }

  Kernel& k_;
  kernel::Group& group_;
  std::set<uint32_t> scratch_;
  std::vector<VarId> carried_;
  std::vector<BufferId> registers_;
};

}  // namespace

Result<bool> store_behind(Kernel& kernel, const Context& context) {
  return for_each_nest(kernel, context, [&](kernel::Group* group) {
    return StoreBehind(&kernel, group).run(*context.target);
  });
}

}  // namespace heddle::lower
