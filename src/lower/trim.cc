#include "lower/trim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel/lanes.h"
#include "kernel/rewriter.h"
#include "kernel/verify.h"
#include "lower/passes.h"
#include "lower/trim_facts.h"
#include "lower/trim_lines.h"
#include "lower/trim_loops.h"
#include "lower/trim_parts.h"
#include "lower/trim_products.h"
#include "lower/trim_stops.h"
#include "lower/trim_tasks.h"
#include "lower/trim_tiles.h"

namespace heddle::lower {
namespace {

using kernel::Expr, kernel::ExprId, kernel::Group, kernel::GridDim, kernel::Op, kernel::Phase;
using kernel::Rewriter, kernel::Stmt, kernel::StmtKind, kernel::Type, kernel::VarId;

using namespace trimming;  // NOLINT: what this file is about

class Trimmer {
 public:
  Trimmer(Kernel* kernel, const TrimRequest& request, const Stops& stops, int64_t tasks)
      : k_(*kernel),
        request_(request),
        stops_(stops),
        variables_(stops.variables()),
        tasks_(tasks) {}

  void run() {
    for (Phase& phase : k_.phases) rewrite(phase);
  }

 private:
  bool stops(VarId var) const { return stops_.stops(var.value); }
  const TrimGroup& group_of(const Fact& fact) const { return stops_.group_of(fact); }

  ExprId extent_of(const TrimGroup& group) {
    const ExprId n = k_.convert(k_.load(group.extent, {k_.constant(0)}), Type::s64);
    return group.times == 1 ? n : k_.binary(Op::mul, n, k_.constant(group.times));
  }

  ExprId end_of(int group, int64_t granule) {
    ExprId& end = ends_[std::pair(group, granule)];
    if (end.valid()) return end;
    const TrimGroup& of = request_.groups[static_cast<size_t>(group)];
    if (granule >= of.bound) return end = k_.constant(of.bound);
    ExprId n = extent_of(of);
    if (of.beyond != 0) n = k_.binary(Op::add, n, k_.constant(of.beyond));
    if (granule > 1) {
      n = k_.binary(Op::floor_div, k_.binary(Op::add, n, k_.constant(granule - 1)),
                    k_.constant(granule));
      n = k_.binary(Op::mul, n, k_.constant(granule));
    }
    n = k_.binary(Op::max, k_.binary(Op::min, n, k_.constant(of.bound)), k_.constant(0));
    return end = let("limit", n, &prologue_);
  }

  // Numbers from the variable's first one to the end of the group.
  ExprId left(uint32_t var) {
    const Fact& fact = *variables_[var].fact;
    return left_of(end_of(fact.group, stops_.reach(var)), fact);
  }

  ExprId left_of(ExprId end, const Fact& fact) {
    if (fact.scale != 1) end = k_.binary(Op::mul, end, k_.constant(fact.scale));
    for (const auto& [outer, times] : fact.base)
      end = k_.binary(Op::sub, end, k_.binary(Op::mul, k_.ref(VarId(outer)), k_.constant(times)));
    return fact.low == 0 ? end : k_.binary(Op::sub, end, k_.constant(fact.low));
  }

  ExprId trips(uint32_t var, int lanes) {
    const Variable& variable = variables_[var];
    const Fact& fact = *variable.fact;
    ExprId result = left(var);
    const int64_t step = std::max<int64_t>(fact.factor, lanes);
    if (step != 1) {
      result = k_.binary(Op::floor_div, k_.binary(Op::add, result, k_.constant(step - 1)),
                         k_.constant(step));
      if (step != fact.factor) result = k_.binary(Op::mul, result, k_.constant(step / fact.factor));
    }
    result = k_.binary(Op::min, result, k_.constant(variable.extent));
    return k_.binary(Op::max, result, k_.constant(0));
  }

  // Rows of a tile that could be fewer.
  bool is_tiles(const Stmt& stmt) const {
    if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial) return false;
    const Variable& variable = variables_[stmt.var.index()];
    if (!stops(stmt.var)) return false;
    const Fact& fact = *variable.fact;
    return fact.scale == 1 && fact.factor > 1 && fact.low == fact.high &&  // whole tiles are stored
           !group_of(fact).reduced;
  }

  // What replaces a loop over tiles, where their rows are written out; empty: it only stops.
  std::vector<Stmt> balanced(const Stmt& stmt) {
    const Variable& variable = variables_[stmt.var.index()];
    if (!is_tiles(stmt) || request_.reads_windows(variable.fact->group)) return {};
    const std::optional<Tile> tile = tile_of(k_, variables_, stmt);
    if (!tile) return {};
    Tiles tiles;
    tiles.each = *tile;
    tiles.most = variable.extent * tile->rows;
    tiles.left = left(stmt.var.value);
    const int group = variable.fact->group;
    tiles.has_rows = [this, group](BufferId buffer) {
      if (buffer.index() >= request_.globals.size()) return true;
      const std::vector<TrimDigit>& digits = request_.globals[buffer.index()];
      return std::any_of(digits.begin(), digits.end(),
                         [&](const TrimDigit& digit) { return digit.group == group; });
    };
    return balanced(stmt, std::move(tiles));
  }

  // `from`: the first of the tiles.
  std::vector<Stmt> balanced(const Stmt& from, Tiles tiles) {
    const uint32_t var = from.var.value;
    const Fact& fact = *variables_[var].fact;
    const auto whole = [&](int64_t number) { return number % group_of(fact).times == 0; };
    tiles.granule = stops_.reach(var);
    if (tiles.granule == 1 && whole(fact.low) &&
        std::all_of(fact.base.begin(), fact.base.end(),
                    [&](const auto& outer) { return whole(outer.second); }))
      tiles.granule = group_of(fact).times;
    if (fact.base.empty()) tiles.least = std::max<int64_t>(1, group_of(fact).least - fact.low);
    return balance(&k_, tiles);
  }

  // Tiles of a line of windows, all of them: where no window is cut by the right edge, of as many
  // columns as there are.
  std::vector<Stmt> line(std::vector<Stmt> loops) {
    std::vector<Stmt> result;
    std::optional<Tiles> tiles = tiles_of_line(k_, request_, variables_, loops);
    if (tiles) {
      const uint32_t var = loops[0].var.value;
      const Fact& fact = *variables_[var].fact;
      tiles->left = left(var);
      tiles->stay = true;
      if (tiles->each.loop != nullptr && group_of(fact).beyond > 0 && stops_.reach(var) == 1 &&
          !loads_windows(k_, request_, without_products(k_, tiles->each.loop->body))) {
        tiles->left_with_beyond = tiles->left;
        tiles->left = left_of(extent_of(group_of(fact)), fact);
      }
      tiles->has_rows = [this](BufferId buffer) {
        return buffer.index() >= request_.globals.size() ||
               !request_.globals[buffer.index()].empty();
      };
      tiles->taller = 2;  // few sums are bound by latency
      std::vector<Stmt> few = balanced(loops[0], *tiles);
      const Variable& last = variables_[loops.back().var.index()];
      const int64_t all = last.fact->low + last.extent * last.fact->factor - fact.low;
      if (!few.empty() && tiles->most == all) return few;
      if (!few.empty())
        result.push_back(
            make_if(k_.compare(Op::le, tiles->left, k_.constant(tiles->most)), std::move(few)));
    }
    std::vector<Stmt>* rest = result.empty() ? &result : &result[0].otherwise;
    for (Stmt& loop : loops) {
      stop(&loop);
      rest->push_back(std::move(loop));
    }
    return result;
  }

  void put(Stmt stmt, std::vector<Stmt>* to) {
    std::vector<Stmt> instead;
    if (stmt.kind == StmtKind::loop && stops(stmt.var)) {
      if (const auto last = lines_.find(stmt.var.value); last != lines_.end()) {
        std::vector<Stmt>& waiting = waiting_[last->second];
        const bool is_last = stmt.var.value == last->second;
        waiting.push_back(std::move(stmt));
        if (!is_last) return;
        for (Stmt& one : line(std::move(waiting))) to->push_back(std::move(one));
        return;
      }
      instead = stops_.parts_of(stmt.var.value) != nullptr ? with_parts(&stmt) : balanced(stmt);
      if (instead.empty()) stop(&stmt);
    }
    if (instead.empty()) instead.push_back(std::move(stmt));
    std::move(instead.begin(), instead.end(), std::back_inserter(*to));
  }

  // Whole steps, then the parts of the last one that are there.
  std::vector<Stmt> with_parts(Stmt* loop) {
    const Variable& variable = variables_[loop->var.index()];
    const int64_t step = variable.fact->factor, most = variable.extent * step;
    std::vector<Stmt> result;
    std::vector<Stmt>* lets = variable.fact->base.empty() ? &prologue_ : &result;
    const ExprId end = left(loop->var.value);  // may be named in front
    const ExprId all =
        k_.binary(Op::max, k_.binary(Op::min, end, k_.constant(most)), k_.constant(0));
    const ExprId whole = let("whole", k_.binary(Op::floor_div, all, k_.constant(step)), lets);
    const ExprId rest =
        let("rest", k_.binary(Op::sub, all, k_.binary(Op::mul, whole, k_.constant(step))), lets);
    const int64_t each = variables_[*stops_.parts_of(loop->var.value)].fact->factor;
    for (Stmt& stmt : in_parts(&k_, std::move(*loop), whole, rest, each))
      result.push_back(std::move(stmt));
    return result;
  }

  void leave_out_products_of(VarId var, std::vector<Stmt>* body) {
    const Fact& fact = *variables_[var.index()].fact;
    const TrimGroup& group = group_of(fact);
    if (group.beyond == 0 || group.reduced || fact.scale != 1) return;
    const ExprId own = k_.binary(Op::mul, k_.ref(var), k_.constant(fact.factor));
    leave_out_products(&k_, k_.binary(Op::sub, left_of(extent_of(group), fact), own), body);
  }

  void stop(Stmt* loop) {
    const Variable& variable = variables_[loop->var.index()];
    if (loop->loop == LoopKind::serial) leave_out_products_of(loop->var, &loop->body);
    const bool lanes = loop->loop == LoopKind::vector;
    // Squares that are transposed in registers are whole: what is around them stops.
    if (lanes && (variable.fact->factor != 1 || kernel::lanes_work_together(k_, loop->body))) return;
    const ExprId extent = trips(loop->var.value, lanes ? loop->lanes : 1);
    const bool once = variable.fact->base.empty();  // a task
    loop->extent = once ? let("trips", extent, &prologue_) : extent;
  }

  // Several groups of which one is shared become one: there is more to do in some tasks than in
  // others, and workers have parts of all tasks, one behind the other.
  void rewrite(Phase& phase) {
    std::vector<Group>& groups = phase.groups;
    const auto has_loops = [](const Group& group) { return !group.grid.empty(); };
    const auto stops_early = [&](const Group& group) {
      return first_shared(group) < group.grid.size();
    };
    const bool together = groups.size() > 1 && !phase.in_order &&
                          std::all_of(groups.begin(), groups.end(), has_loops) &&
                          std::any_of(groups.begin(), groups.end(), stops_early);
    for (Group& group : groups) rewrite(group, together);
    if (together) join_tasks(&k_, &groups);
  }

  void rewrite(Group& group, bool together) {
    prologue_.clear();
    ends_.clear();
    lines_ = find_lines(group.body, variables_, [&](const Stmt& stmt) {
      return is_tiles(stmt) && request_.reads_windows(variables_[stmt.var.index()].fact->group);
    });
    Rewriter rewriter(&k_);
    rewriter.statement = [&](const Stmt&, Stmt made, std::vector<Stmt>* to) {
      put(std::move(made), to);
    };
    group.body = rewriter.block(group.body);
    for (const GridDim& dim : group.grid)
      if (stops(dim.var)) {
        leave_out_products_of(dim.var, &group.body);
        if (!is_shared(dim)) leave_out(dim, &group.body);
      }
    share(&group, together);
    group.body.insert(group.body.begin(), std::make_move_iterator(prologue_.begin()),
                      std::make_move_iterator(prologue_.end()));
  }

  void leave_out(const GridDim& dim, std::vector<Stmt>* body) {
    const Fact& fact = *variables_[dim.var.index()].fact;
    const ExprId rest = k_.binary(Op::sub, left(dim.var.value),
                                  k_.binary(Op::mul, k_.ref(dim.var), k_.constant(fact.factor)));
    *body = {make_if(k_.compare(Op::gt, rest, k_.constant(0)), std::move(*body))};
  }

  bool is_shared(const GridDim& dim) const {
    const Variable& variable = variables_[dim.var.index()];
    return stops(dim.var) && variable.fact->base.empty();
  }

  size_t first_shared(const Group& group) const {
    const auto at = std::find_if(group.grid.begin(), group.grid.end(),
                                 [&](const GridDim& dim) { return is_shared(dim); });
    return static_cast<size_t>(at - group.grid.begin());
  }

  // All loops over tasks from the first that stops on are shared, or all there are: those that are
  // there of it alone may be fewer than the workers.
  void share(Group* group, bool all) {
    const std::vector<GridDim>& grid = group->grid;
    Tasks tasks{all ? 0 : first_shared(*group), all ? tasks_ : 1, tasks_, {}};
    for (size_t i = tasks.first; i < grid.size(); ++i) {
      if (!all) tasks.most *= variables_[grid[i].var.index()].extent;
      tasks.trips.push_back(is_shared(grid[i])
                                ? let("trips", trips(grid[i].var.value, 1), &prologue_)
                                : grid[i].extent);
    }
    if (tasks.most > 1) share_tasks(&k_, tasks, group, &prologue_);
  }

  ExprId let(const char* name, ExprId value, std::vector<Stmt>* lets) {
    const VarId var = k_.add_var(name);
    lets->push_back(make_let(var, value));
    return k_.ref(var);
  }

  Kernel& k_;
  const TrimRequest& request_;
  const Stops& stops_;
  const std::vector<Variable>& variables_;
  int64_t tasks_;
  std::map<uint32_t, uint32_t> lines_;  // in the group of tasks that is rewritten (find_lines)
  std::map<uint32_t, std::vector<Stmt>> waiting_;   // loops of a line, by its last one
  std::map<std::pair<int, int64_t>, ExprId> ends_;  // in the group of tasks that is rewritten
  std::vector<Stmt> prologue_;
};

// The attempt to trim a kernel for some groups; `reads` as in Trim.
Refusal attempt(Kernel* kernel, const TrimRequest& request,
                const std::vector<std::vector<TrimDigit>>& left, int64_t tasks, Trim* result) {
  Facts facts;
  Refusal refused = find_facts(*kernel, request, left, &facts);
  if (refused) return refused;
  // Groups are left where they are reduced.
  Stops stops(*kernel, request, std::move(facts), counted_on(result->request),
              !result->left.empty());
  refused = stops.find();
  if (refused) return refused;
  Kernel trimmed = *kernel;
  Trimmer(&trimmed, request, stops, tasks).run();
  if (!kernel::verify(trimmed)) {
    refused.because("trim-form", "lanes that work together may not stop alone");
    return refused;
  }
  for (size_t b = 0; b < result->request.globals.size(); ++b)
    for (const TrimDigit& digit : result->request.globals[b])
      result->reads[b].push_back(result->left.count(digit.group) == 0
                                     ? stops.reads(b, digit.group)
                                     : request.groups[static_cast<size_t>(digit.group)].bound);
  *kernel = std::move(trimmed);
  return refused;
}

void join_groups(int group, int with, TrimRequest* request) {
  TrimGroup& one = request->groups[static_cast<size_t>(group)];
  const TrimGroup& other = request->groups[static_cast<size_t>(with)];
  one.reduced = one.reduced || other.reduced;
  one.least = std::max(one.least, other.least);
  for (std::vector<TrimDigit>& digits : request->globals)
    for (TrimDigit& digit : digits)
      if (digit.group == with) digit.group = group;
}

// Loops over a group that cannot stop run to its bound; those over others do stop.
Decision trim_to(Kernel* kernel, int64_t tasks, Trim* wanted) {
  TrimRequest request = wanted->request;
  std::set<int> groups;
  for (const auto& digits : request.globals)
    for (const TrimDigit& digit : digits) groups.insert(digit.group);
  wanted->reads.assign(request.globals.size(), {});
  std::vector<std::vector<TrimDigit>> left(request.globals.size());
  Kernel split = *kernel;
  split_loops(&split, request);
  for (;;) {
    const Refusal refused = attempt(&split, request, left, tasks, wanted);
    const int at = refused.group;
    if (refused.with >= 0) {
      join_groups(at, refused.with, &request);
      join_groups(at, refused.with, &wanted->request);
      groups.erase(refused.with);
      continue;
    }
    if (!refused) *kernel = std::move(split);
    if (at < 0 || groups.size() == wanted->left.size() + 1) return refused.why;
    wanted->left.emplace(at, refused.why);
    for (size_t b = 0; b < left.size(); ++b)
      std::erase_if(request.globals[b], [&](const TrimDigit& digit) {
        if (digit.group == at) left[b].push_back(digit);
        return digit.group == at;
      });
  }
}

}  // namespace

Result<bool> trim(Kernel& kernel, const Context& context) {
  if (!context.trim) return false;
  Trim& wanted = *context.trim;
  const size_t before = kernel.exprs().size();
  const int64_t tasks = context.target ? 4 * std::max<int64_t>(1, context.target->cores) : 64;
  wanted.done = trim_to(&kernel, tasks, &wanted);
  return wanted.done && kernel.exprs().size() != before;
}

}  // namespace heddle::lower
