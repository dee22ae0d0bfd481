#include "lower/trim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel/rewriter.h"
#include "kernel/verify.h"
#include "lower/passes.h"
#include "lower/trim_facts.h"
#include "lower/trim_loops.h"
#include "lower/trim_parts.h"
#include "lower/trim_products.h"
#include "lower/trim_tasks.h"
#include "lower/trim_tiles.h"

namespace heddle::lower {
namespace {

using kernel::Expr, kernel::ExprId, kernel::Group, kernel::GridDim, kernel::Op, kernel::Phase;
using kernel::Rewriter, kernel::Stmt, kernel::StmtKind, kernel::Type, kernel::VarId;

using namespace trimming;  // NOLINT: what this file is about

class Trimmer {
 public:
  // `counted`: how far results are counted on, by group. `reduces_all`: the kernel reduces over a
  // group that it is not trimmed for.
  Trimmer(Kernel* kernel, const TrimRequest& request, std::vector<int64_t> counted,
          bool reduces_all, int64_t tasks, Facts facts)
      : k_(*kernel),
        request_(request),
        counted_(std::move(counted)),
        reduces_all_(reduces_all),
        tasks_(tasks),
        lanes_(most_lanes(*kernel)),
        variables_(std::move(facts.variables)),
        accesses_(std::move(facts.touches)) {}

  Refusal run() {
    for (const Phase& phase : k_.phases)
      for (const Group& group : phase.groups) find_parts(group.body);
    find_reach();
    if (!check_reduced()) return refused_;
    for (Phase& phase : k_.phases) rewrite(phase);
    return refused_;
  }

  // How far the kernel counts on a global buffer along a group.
  int64_t reads(size_t buffer, int group) {
    const int64_t times = request_.groups[static_cast<size_t>(group)].times;
    const int64_t numbers = *read(buffer, group);
    return numbers == 1 ? 1 : common_reach(numbers, times) / times;
  }

 private:
  // --- where it may stop ---------------------------------------------------------------------

  const TrimGroup& group_of(const Fact& fact) const {
    return request_.groups[static_cast<size_t>(fact.group)];
  }

  bool can_stop(const Variable& variable) const {
    return variable.fact && !variable.elsewhere && variable.extent >= 0;
  }

  // The numbers that one value of an outer variable stands for, where this one moves inside them;
  // 0: nothing around it is in the group.
  int64_t share(const Variable& variable) const {
    int64_t least = 0;
    for (const auto& [outer, times] : variable.fact->base)
      if (least == 0 || times < least) least = times;
    return least;
  }

  bool stops(const Variable& variable) const {
    if (!can_stop(variable) || variable.kind == LoopKind::unrolled) return false;
    const int64_t around = share(variable), own = variable.extent * variable.fact->factor;
    if (variable.fact->scale != 1) return around == 0 || own > 64;
    if (around == 0) return own > 1;
    if (variable.kind == LoopKind::vector) return own > 64;
    return (variable.kind == LoopKind::serial || variable.grid) && own > 1;
  }

  // Loops whose steps are several parts written out, as vectors of a sum: the last step may be
  // fewer.
  void find_parts(const std::vector<Stmt>& body) {
    for (const Stmt& stmt : body) {
      find_parts(stmt.body);
      find_parts(stmt.otherwise);
      if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial || stmt.body.size() != 1 ||
          !stops(variables_[stmt.var.index()]))
        continue;
      const Stmt& inner = stmt.body[0];
      if (inner.kind != StmtKind::loop || inner.loop != LoopKind::unrolled) continue;
      const Variable& part = variables_[inner.var.index()];
      if (!can_stop(part)) continue;
      const Fact &whole = *variables_[stmt.var.index()].fact, &fact = *part.fact;
      const auto around = fact.base.find(stmt.var.value);
      if (fact.group == whole.group && group_of(whole).reduced && around != fact.base.end() &&
          around->second == whole.factor && part.extent * fact.factor == whole.factor &&
          whole.scale == 1 && fact.scale == 1 && whole.low == 0 && whole.high == 0 &&
          fact.low == 0 && fact.high == 0 && may_be_cut(inner, fact.factor))
        parts_.emplace(stmt.var.value, inner.var.value);
    }
  }

  // Vectors, or steps of a sum that could be a loop as well.
  bool may_be_cut(const Stmt& parts, int64_t each) const {
    return each == 1 ? !numbers_registers(k_, parts.body, parts.var)
                     : lanes_ > 1 && each % lanes_ == 0;
  }

  bool is_part(uint32_t var) const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const auto& pair) { return pair.second == var; });
  }

  // What one step of a variable takes of its group; all that it moves over where it is not a loop
  // that stops.
  int64_t step(uint32_t var) const {
    const Variable& variable = variables_[var];
    if (const auto parts = parts_.find(var); parts != parts_.end())
      return variables_[parts->second].fact->factor;
    if (is_part(var)) return variable.fact->factor;
    const int64_t own = variable.extent * variable.fact->factor;
    if (!stops(variable)) return own;
    const int64_t lanes = variable.kind == LoopKind::vector ? lanes_ : 1;
    return std::min(own, std::max(variable.fact->factor, lanes));
  }

  // How far readers make writers go: what is read of a buffer reaches as far as its readers' loops,
  // and a loop that stores reaches as far as what it stores into is read.
  void find_reach() {
    // What results are counted on may go through loops of which nothing is known.
    std::vector<int64_t> numbers;  // by group
    for (size_t g = 0; g < counted_.size(); ++g)
      numbers.push_back(counted_[g] == 1 ? 1 : counted_[g] * request_.groups[g].times);
    reach_.assign(variables_.size(), 1);
    for (size_t v = 0; v < variables_.size(); ++v) {
      if (!variables_[v].fact) continue;
      const Fact& fact = *variables_[v].fact;
      reach_[v] = numbers[static_cast<size_t>(fact.group)];
      if (group_of(fact).reduced)
        reach_[v] = common_reach(reach_[v], step(static_cast<uint32_t>(v)));
    }
    for (size_t b = 0; b < k_.buffers.size(); ++b)
      read_.insert(read_.end(), numbers.begin(), numbers.end());
    // A reduction over a group that is left reads all of it, also of scratch where it belongs to
    // another one.
    for (const Touch& access : accesses_)
      for (size_t i = 0; reduces_all_ && i < access.whole.size(); ++i) {
        const int group = access.whole[i];
        *read(access.buffer.index(), group) = request_.groups[static_cast<size_t>(group)].bound;
      }
    for (bool changed = true; changed;) {
      changed = false;
      for (const Touch& access : accesses_) {
        for (const Linear::Term& term : access.index.terms) {
          const uint32_t var = term.var.value;
          if (!variables_[var].fact) continue;
          int64_t* of_buffer = read(access.buffer.index(), variables_[var].fact->group);
          int64_t& from = access.store ? *of_buffer : reach_[var];
          int64_t& to = access.store ? reach_[var] : *of_buffer;
          const int64_t both = common_reach(to, from);
          if (to == both) continue;
          to = both;
          changed = true;
        }
      }
    }
  }

  int64_t* read(size_t buffer, int group) {
    return &read_[buffer * request_.groups.size() + static_cast<size_t>(group)];
  }

  // All that moves over a reduced group stops at the granule, or stays inside of one.
  bool check_reduced() {
    for (size_t v = 0; v < variables_.size(); ++v) {
      const Variable& variable = variables_[v];
      if (!variable.fact || !group_of(*variable.fact).reduced || variable.extent == 1) continue;
      const Fact& fact = *variable.fact;
      const int64_t granule = std::min(reach_[v], group_of(fact).bound);
      auto no = [&](const char* why) {
        return refused_.because("trim-reduced", fmt::format("{} {}", k_.vars[v].name, why),
                                fact.group);
      };
      if (!can_stop(variable)) return no("moves elsewhere too");
      const int64_t own = (is_part(static_cast<uint32_t>(v)) ? 1 : variable.extent) * fact.factor;
      if (fact.low % fact.factor != 0 && stops(variable)) return no("begins between steps");
      if (fact.high - fact.low >= std::max(stops(variable) ? fact.factor : granule, int64_t{1}))
        return no("reaches further");
      if (!stops(variable) && own > granule && own < group_of(fact).bound)
        return no("does not stop");
      for (const auto& [outer, times] : fact.base)
        if (times % std::min(own, granule) != 0 && granule % times != 0)
          return no("does not line up");
    }
    return true;
  }

  // --- the kernel that stops -----------------------------------------------------------------

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
    return left_of(end_of(fact.group, reach_[var]), fact);
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

  // The loops that write the rows of a tile out, all of them; empty: it is made otherwise.
  std::set<uint32_t> written_out(const Stmt& tile, const std::set<uint32_t>& inside) const {
    const Variable& variable = variables_[tile.var.index()];
    std::set<uint32_t> result;
    for (const uint32_t var : inside) {
      if (var >= variables_.size()) continue;  // of fewer rows further in
      const Variable& inner = variables_[var];
      if (!inner.fact || inner.fact->group != variable.fact->group ||
          inner.fact->base.count(tile.var.value) == 0)
        continue;
      const Fact& fact = *inner.fact;
      if (inner.kind != LoopKind::unrolled || inner.extent != variable.fact->factor ||
          fact.factor != 1 || fact.scale != 1 || fact.low != fact.high ||
          fact.low != variable.fact->low)
        return {};
      result.insert(var);
    }
    return result;
  }

  // What replaces a loop over tiles, where their rows are written out; empty: it only stops.
  std::vector<Stmt> balanced(const Stmt& stmt) {
    const uint32_t var = stmt.var.value;
    const Variable& variable = variables_[var];
    const Fact& fact = *variable.fact;
    // Rows of windows are not those that are stored: their loops would stay as they are.
    if (stmt.loop != LoopKind::serial || fact.scale != 1 || fact.factor < 2 ||
        fact.low != fact.high ||  // whole tiles are stored
        group_of(fact).reduced || request_.reads_windows(fact.group))
      return {};
    Tiles tiles;
    std::set<uint32_t> inside;
    find_variables(stmt.body, &inside);
    tiles.written_out = written_out(stmt, inside);
    if (tiles.written_out.empty()) return {};
    tiles.loop = &stmt;
    tiles.rows = fact.factor;
    tiles.left = left(var);
    const auto whole = [&](int64_t number) { return number % group_of(fact).times == 0; };
    tiles.granule = reach_[var];
    if (tiles.granule == 1 && whole(fact.low) &&
        std::all_of(fact.base.begin(), fact.base.end(),
                    [&](const auto& outer) { return whole(outer.second); }))
      tiles.granule = group_of(fact).times;
    if (fact.base.empty()) tiles.least = std::max<int64_t>(1, group_of(fact).least - fact.low);
    tiles.has_rows = [&](BufferId buffer) {
      if (buffer.index() >= request_.globals.size()) return true;
      const std::vector<TrimDigit>& digits = request_.globals[buffer.index()];
      return std::any_of(digits.begin(), digits.end(),
                         [&](const TrimDigit& digit) { return digit.group == fact.group; });
    };
    return balance(&k_, tiles);
  }

  void put(Stmt stmt, std::vector<Stmt>* to) {
    std::vector<Stmt> instead;
    if (stmt.kind == StmtKind::loop && stops(variables_[stmt.var.index()])) {
      instead = parts_.count(stmt.var.value) > 0 ? with_parts(&stmt) : balanced(stmt);
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
    const int64_t each = variables_[parts_.at(loop->var.value)].fact->factor;
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
    if (lanes && variable.fact->factor != 1) return;
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
    Rewriter rewriter(&k_);
    rewriter.statement = [&](const Stmt&, Stmt made, std::vector<Stmt>* to) {
      put(std::move(made), to);
    };
    group.body = rewriter.block(group.body);
    for (const GridDim& dim : group.grid)
      if (stops(variables_[dim.var.index()])) {
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
    return stops(variable) && variable.fact->base.empty();
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
  std::vector<int64_t> counted_;
  bool reduces_all_;
  int64_t tasks_;
  int64_t lanes_;  // of a vector loop, at most; all narrower ones divide it
  std::vector<Variable> variables_;
  std::vector<Touch> accesses_;
  std::map<uint32_t, uint32_t> parts_;  // a loop and the one inside, which writes its parts out
  std::vector<int64_t> reach_;  // by variable: its loop stops at the extent rounded up to it
  std::vector<int64_t> read_;   // by buffer and group: the same of what is read
  std::map<std::pair<int, int64_t>, ExprId> ends_;  // in the group of tasks that is rewritten
  std::vector<Stmt> prologue_;
  Refusal refused_;
};

// The attempt to trim a kernel for some groups; `reads` as in Trim.
Refusal attempt(Kernel* kernel, const TrimRequest& request,
                const std::vector<std::vector<TrimDigit>>& left, int64_t tasks, Trim* result) {
  Facts facts;
  Refusal refused = find_facts(*kernel, request, left, &facts);
  if (refused) return refused;
  Kernel trimmed = *kernel;
  const std::vector<int64_t> counted = counted_on(result->request);
  // Groups are left where they are reduced.
  Trimmer trimmer(&trimmed, request, counted, !result->left.empty(), tasks, std::move(facts));
  refused = trimmer.run();
  if (!refused && !kernel::verify(trimmed))
    refused.because("trim-form", "lanes that work together may not stop alone");
  if (refused) return refused;
  *kernel = std::move(trimmed);
  for (size_t b = 0; b < result->request.globals.size(); ++b)
    for (const TrimDigit& digit : result->request.globals[b])
      result->reads[b].push_back(result->left.count(digit.group) == 0
                                     ? trimmer.reads(b, digit.group)
                                     : request.groups[static_cast<size_t>(digit.group)].bound);
  return refused;
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
