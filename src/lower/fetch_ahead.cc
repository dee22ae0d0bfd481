// Prefetches the data of the next task (or the next row of a task) during a later sweep over the
// current one: the sweeps after the first find their row in the caches, and memory would be idle.
// Prefetches are added to the later sweeps of a group's tasks, for the arrays that an earlier sweep
// has read, if two tasks' share of them fits L2.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "kernel/lanes.h"
#include "kernel/linear.h"
#include "kernel/op_info.h"
#include "kernel/rewriter.h"
#include "lower/passes.h"

namespace heddle::lower {

namespace {

using kernel::BufferId;
using kernel::ExprId;
using kernel::factor_of;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;

constexpr int64_t kNearBytes = 4096;
// Gathered rows may be anywhere: each takes the full latency of memory.
constexpr int64_t kLookedUpBytes = 8192, kMostRowsAhead = 64;
constexpr int64_t kLeastShare = 1024;  // bytes per task: the hardware prefetcher finds less

struct Access {
  BufferId buffer;
  ExprId index;
};

struct Around {
  VarId var;
  int64_t trips;
};

struct Gather {
  Access at;
  int64_t elems;             // contiguous
  std::vector<VarId> loops;  // that walk along them, innermost first
};

class Ahead {
 public:
  Ahead(Kernel* k, const target::Target& target) : k_(*k), target_(target) {}

  // `around`: the loops around the statements, the innermost last; `tasks`: the product of their
  // trips.
  void run(std::vector<Stmt>* body, std::vector<Around> around, int64_t tasks) {
    std::vector<Stmt*> sweeps;
    for (Stmt& stmt : *body)
      if (stmt.kind == StmtKind::loop && !accesses(stmt).empty()) sweeps.push_back(&stmt);
    if (sweeps.empty()) return;
    const size_t busy = busiest(sweeps);
    std::map<uint32_t, int64_t> steps;  // of arrays that are read before that sweep
    for (size_t i = 0; i < busy; ++i)
      for (const Access& access : accesses(*sweeps[i]))
        note(access, around.back().var, tasks, &steps);
    std::set<uint32_t> known;
    if (!steps.empty() && fits(steps, tasks)) {
      add_to(sweeps[busy], around.back().var, steps);
      for (const auto& [buffer, step] : steps) known.insert(buffer);
    }
    std::vector<Gather> gathers;
    for (size_t i = 0; i + 1 < sweeps.size(); ++i) {
      std::vector<Around> inner;
      note_gathers(*sweeps[i], around.back(), &inner, &gathers);
    }
    fetch_gathers(sweeps.back(), around.back(), gathers);
    for (Stmt* sweep : sweeps) add_looked_up(sweep);
    tasks_ = around.size();
    for (Stmt* sweep : sweeps) {
      std::vector<Stmt> before;
      add_near(sweep, &around, known, &before);
      HEDDLE_CHECK(before.empty(), "fetches before a sweep");
      for (const Access& access : accesses(*sweep)) known.insert(access.buffer.value);
    }
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
    if (!step || *step <= 0 || all < 2 * target_.second_cache_bytes() || all / tasks < kLeastShare)
      return;
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

  // The sweep in which memory is most idle: one that computes functions; else the last one. A short
  // sweep, such as the remainder of a row, is avoided.
  size_t busiest(const std::vector<Stmt*>& sweeps) const {
    int64_t most = 0;
    for (const Stmt* sweep : sweeps) most = std::max(most, points(*sweep));
    size_t best = sweeps.size() - 1;
    auto score = [&](size_t i) {
      return std::pair(4 * points(*sweeps[i]) >= most, has_functions(*sweeps[i]));
    };
    for (size_t i = sweeps.size() - 1; i-- > 1;)
      if (score(i) > score(best)) best = i;
    return best;
  }

  // Iterations of all its loops; a loop of unknown trip count counts once.
  int64_t points(const Stmt& root) const {
    if (root.kind != StmtKind::loop) return 1;
    const kernel::Expr& extent = k_.expr(root.extent);
    int64_t inner = 1;
    for (const Stmt& stmt : root.body) inner = std::max(inner, points(stmt));
    return inner * (extent.op == Op::constant ? extent.imm : 1);
  }

  bool has_functions(const Stmt& root) const {
    bool found = false;
    std::function<void(const Stmt&)> walk = [&](const Stmt& stmt) {
      for (ExprId id : kernel::reachable(k_, expressions(stmt)))
        found |= kernel::is_math(k_.expr(id).op);
      for (const Stmt& inner : stmt.body) walk(inner);
    };
    walk(root);
    return found;
  }

  bool is_memory(BufferId id) const {
    return k_.buffer(id).space == kernel::Space::global && elems(id) > 0;
  }

  // Prefetches some lines further ahead than the hardware does, in every vector of the sweep, for
  // the arrays that no earlier sweep has read. `around`: the loops, innermost last; `before`:
  // receives the prefetches that are invariant in the statement, to be placed before it.
  void add_near(Stmt* stmt, std::vector<Around>* around, const std::set<uint32_t>& known,
                std::vector<Stmt>* before) {
    if (stmt->kind != StmtKind::loop) return;
    // A loop with a run-time extent (the last strip is shorter) is assumed to be long.
    const kernel::Expr& extent = k_.expr(stmt->extent);
    around->push_back({stmt->var, extent.op == Op::constant ? extent.imm : kNearBytes});
    if (stmt->loop != LoopKind::vector) {
      // Prefetches are not moved out of a sweep.
      const bool again = around->size() > tasks_ + 1;
      const bool once = around->back().trips == 1;
      std::vector<Stmt> body;
      for (Stmt& inner : stmt->body) {
        std::vector<Stmt> fetches;
        add_near(&inner, around, known, &fetches);
        for (Stmt& fetch : fetches)
          (again && (once || factor_of(k_, fetch.indices[0], stmt->var) == 0) ? *before : body)
              .push_back(without(std::move(fetch), stmt->var, once));
        body.push_back(std::move(inner));
      }
      stmt->body = std::move(body);
      around->pop_back();
      return;
    }
    std::vector<Stmt> fetches;
    const Around* parent = around->size() > tasks_ + 1 ? &(*around)[around->size() - 2] : nullptr;
    for (const Access& access : accesses(*stmt)) {
      if (k_.buffer(access.buffer).access != kernel::Access::in ||
          known.count(access.buffer.value) > 0 ||
          bytes(access.buffer) < target_.second_cache_bytes() ||
          factor_of(k_, access.index, stmt->var) != 1)
        continue;
      const int64_t distance = near(access, *around);
      if (distance == 0) continue;
      if (parent && extent.op == Op::constant &&
          (parent->trips == 1 || factor_of(k_, access.index, parent->var) == 0)) {
        Rewriter first(&k_);
        first.replace(stmt->var, k_.constant(int64_t{0}));
        const Access start{access.buffer, first.expr(access.index)};
        add_fetches(start, access.buffer, distance, 1, stmt->lanes, before);
      } else {
        add_fetches(access, access.buffer, distance, 1, stmt->lanes, &fetches);
      }
    }
    stmt->body.insert(stmt->body.begin(), fetches.begin(), fetches.end());
    around->pop_back();
  }

  // A prefetch moved out of a loop of one trip.
  Stmt without(Stmt fetch, VarId var, bool once) {
    if (!once) return fetch;
    Rewriter first(&k_);
    first.replace(var, k_.constant(int64_t{0}));
    fetch.indices[0] = first.expr(fetch.indices[0]);
    return fetch;
  }

  // The distance in elements that is kNearBytes ahead: along the lanes, or, if these are few, along
  // a loop around them. 0: the index is not linear.
  int64_t near(const Access& access, const std::vector<Around>& around) const {
    const int64_t wanted = kNearBytes / tensor::type_bytes(k_.buffer(access.buffer).type);
    int64_t span = 1;
    for (size_t i = around.size(); i-- > 0 && span < wanted;) {
      const auto factor = factor_of(k_, access.index, around[i].var);
      if (!factor) return 0;
      if (*factor == 0) continue;
      if (*factor != span) return *factor * ((wanted + span - 1) / span);
      span *= around[i].trips;
    }
    return wanted;
  }

  // Prefetches every line that the lanes of one step touch.
  void add_fetches(const Access& at, BufferId buffer, int64_t distance, int level, int lanes,
                   std::vector<Stmt>* fetches) {
    const int64_t line = std::max<int64_t>(1, 64 / tensor::type_bytes(k_.buffer(buffer).type));
    for (int64_t first = 0; first == 0 || first + line <= lanes; first += line)
      fetches->push_back(fetch(at, buffer, distance + first, level));
  }

  Stmt fetch(const Access& at, BufferId buffer, int64_t distance, int level) {
    Stmt result{StmtKind::prefetch};
    result.buffer = buffer;
    result.indices = {k_.binary(Op::add, at.index, k_.constant(distance))};
    result.level = level;
    return result;
  }

  // Collects the rows whose index is read from memory, per task.
  void note_gathers(const Stmt& stmt, const Around& task, std::vector<Around>* inner,
                    std::vector<Gather>* gathers) {
    if (stmt.kind != StmtKind::loop) return;
    const kernel::Expr& extent = k_.expr(stmt.extent);
    inner->push_back({stmt.var, extent.op == Op::constant ? extent.imm : 1});
    for (const Stmt& below : stmt.body) note_gathers(below, task, inner, gathers);
    for (const Access& access :
         stmt.loop == LoopKind::vector ? accesses(stmt) : std::vector<Access>{}) {
      if (k_.buffer(access.buffer).access != kernel::Access::in ||
          2 * bytes(access.buffer) < target_.second_cache_bytes() ||
          factor_of(k_, access.index, task.var))
        continue;
      Gather gather{access, 1, {}};
      bool along = true;  // all of these loops walk along the row
      for (size_t i = inner->size(); i-- > 0;) {
        along &= factor_of(k_, access.index, (*inner)[i].var) == gather.elems;
        gather.elems *= (*inner)[i].trips;
        gather.loops.push_back((*inner)[i].var);
      }
      if (along) gathers->push_back(std::move(gather));
    }
    inner->pop_back();
  }

  void fetch_gathers(Stmt* last, const Around& task, std::vector<Gather> gathers) {
    if (last->loop != LoopKind::vector) return;
    const kernel::Expr& extent = k_.expr(last->extent);
    auto row_bytes = [&](const Gather& gather) {
      return gather.elems * tensor::type_bytes(k_.buffer(gather.at.buffer).type);
    };
    std::erase_if(gathers, [&](const Gather& gather) {
      const int64_t rest = extent.op == Op::constant ? extent.imm - gather.elems : -1;
      const int64_t row = row_bytes(gather);
      return rest < 0 || rest >= 64 || row < kLeastShare || 8 * row > target_.second_cache_bytes();
    });
    int64_t task_bytes = 1;
    for (const Gather& gather : gathers) task_bytes += row_bytes(gather);
    const int64_t tasks = (kLookedUpBytes + task_bytes - 1) / task_bytes;
    for (const Gather& gather : gathers) {
      Rewriter next(&k_);
      // The last tasks prefetch the last row again: its index is loaded, so it must be in bounds.
      next.replace(task.var,
                   k_.binary(Op::min, k_.binary(Op::add, k_.ref(task.var), k_.constant(tasks)),
                             k_.constant(task.trips - 1)));
      for (size_t i = 0; i < gather.loops.size(); ++i)
        next.replace(gather.loops[i], i == 0 ? k_.ref(last->var) : k_.constant(0));
      const Access at{gather.at.buffer, next.expr(gather.at.index)};
      last->body.insert(last->body.begin(), fetch(at, at.buffer, 0, 1));
    }
  }

  // A loop that gathers rows in every step: prefetches the rows of some steps later, by the indices
  // as many steps further on. At the end it prefetches the last ones again.
  void add_looked_up(Stmt* loop) {
    if (loop->kind != StmtKind::loop || loop->loop == LoopKind::vector) return;
    for (Stmt& inner : loop->body) add_looked_up(&inner);
    if (loop->loop != LoopKind::serial) return;
    struct Found {
      Stmt* vector;
      Access at;
    };
    std::vector<Found> found;
    int64_t step_bytes = 0;
    for (Stmt& inner : loop->body) {
      if (inner.kind != StmtKind::loop || inner.loop != LoopKind::vector) continue;
      for (const Access& access : accesses(inner)) {
        if (k_.buffer(access.buffer).access != kernel::Access::in ||
            bytes(access.buffer) < target_.second_cache_bytes() ||
            factor_of(k_, access.index, loop->var) || factor_of(k_, access.index, inner.var) != 1)
          continue;
        found.push_back({&inner, access});
        step_bytes += inner.lanes * tensor::type_bytes(k_.buffer(access.buffer).type);
      }
    }
    if (found.empty()) return;
    const int64_t steps = std::clamp<int64_t>(kLookedUpBytes / step_bytes, 1, kMostRowsAhead);
    for (const Found& row : found) {
      bool known = true, moved = false;
      Rewriter later(&k_);
      later.made = [&](const kernel::Expr& place) -> std::optional<ExprId> {
        if (place.op != Op::load) return std::nullopt;
        const auto factor = is_memory(place.buffer) && !place.guarded &&
                                    k_.buffer(place.buffer).access == kernel::Access::in
                                ? factor_of(k_, place.operands[0], loop->var)
                                : std::nullopt;
        known &= factor && *factor >= 0;
        if (!factor || *factor <= 0) return std::nullopt;
        moved = true;
        const ExprId there = k_.binary(Op::add, place.operands[0], k_.constant(*factor * steps));
        return k_.load(place.buffer,
                       {k_.binary(Op::min, there, k_.constant(elems(place.buffer) - 1))});
      };
      const Access at{row.at.buffer, later.expr(row.at.index)};
      if (known && moved)
        row.vector->body.insert(row.vector->body.begin(), fetch(at, at.buffer, 0, 1));
    }
  }

  // Adds the prefetches to every vector of the sweep that accesses the array, or one of its size
  // with the same step.
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
      const bool few = !target_.caches.empty() && 6 * share_ <= target_.caches[0].bytes;
      add_fetches(*best, buffer, step, few ? 1 : 2, stmt->lanes, &fetches);
    }
    stmt->body.insert(stmt->body.begin(), fetches.begin(), fetches.end());
  }

  Kernel& k_;
  const target::Target& target_;
  size_t tasks_ = 0;   // loops around the sweeps
  int64_t share_ = 0;  // bytes per task
};

// The number of sweeps: loops that store anything new. The remainder of a reduction continues in
// the same registers and is not counted.
int count_sweeps(const Kernel& k, const std::vector<Stmt>& body) {
  std::set<uint32_t> registers;
  int count = 0;
  for (const Stmt& stmt : body) {
    if (stmt.kind != StmtKind::loop) continue;
    bool stores_new = false;
    std::function<void(const Stmt&)> walk = [&](const Stmt& inner) {
      if (inner.kind == StmtKind::store)
        stores_new |= k.buffer(inner.buffer).space != kernel::Space::reg ||
                      registers.insert(inner.buffer.value).second;
      for (const Stmt& below : inner.body) walk(below);
    };
    walk(stmt);
    count += stores_new ? 1 : 0;
  }
  return count;
}

size_t count_statements(const std::vector<Stmt>& body) {
  size_t count = body.size();
  for (const Stmt& stmt : body)
    count += count_statements(stmt.body) + count_statements(stmt.otherwise);
  return count;
}

void fetch_in_group(Kernel* kernel, kernel::Group* group, const target::Target& target) {
  Ahead ahead(kernel, target);
  int64_t tasks = 1;
  std::vector<Around> around;
  for (const kernel::GridDim& dim : group->grid) {
    around.push_back({dim.var, kernel->expr(dim.extent).imm});
    tasks *= around.back().trips;
  }
  if (around.empty()) return;
  // If a task has loops over rows, the sweeps are those of a row, not of the task.
  std::vector<Stmt*> rows;
  for (Stmt& stmt : group->body) {
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial) continue;
    if (count_sweeps(*kernel, stmt.body) > 1 && kernel->expr(stmt.extent).op == Op::constant)
      rows.push_back(&stmt);
  }
  if (rows.empty()) return ahead.run(&group->body, around, tasks);
  for (Stmt* row : rows) {
    around.push_back({row->var, kernel->expr(row->extent).imm});
    ahead.run(&row->body, around, tasks * around.back().trips);
    around.pop_back();
  }
}

}  // namespace

Result<bool> fetch_ahead(Kernel& kernel, const Context& context) {
  return for_each_nest(kernel, context, [&](kernel::Group* group) {
    const size_t before = count_statements(group->body);
    fetch_in_group(&kernel, group, *context.target);
    return count_statements(group->body) != before;
  });
}

}  // namespace heddle::lower
