#include "kernel/trim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kernel/graft.h"
#include "kernel/trim_facts.h"

namespace heddle::kernel {
namespace {

using namespace trimming;  // NOLINT: what this file is about

constexpr int64_t kFewestRows = 4;  // of a tile that is cut into halves
constexpr int64_t kMostLanes = 16;  // of a vector loop; all narrower ones divide it

class Trimmer {
 public:
  Trimmer(Kernel* kernel, const TrimRequest& request, Facts facts)
      : k_(*kernel),
        request_(request),
        variables_(std::move(facts.variables)),
        accesses_(std::move(facts.touches)) {}

  Decision run() {
    find_reach();
    if (!check_reduced()) return refused_;
    for (Phase& phase : k_.phases)
      for (Group& group : phase.groups) rewrite(group);
    return Decision::yes();
  }

  std::vector<int64_t> reads() {
    std::vector<int64_t> result(request_.globals.size(), 1);
    for (size_t b = 0; b < result.size(); ++b)
      for (const TrimDigit& digit : request_.globals[b])
        result[b] = std::max(result[b], *read(b, digit.group));
    return result;
  }

 private:
  bool refuse(const char* code, std::string what) {
    refused_ = Decision::no(code, "{}", std::move(what));
    return false;
  }

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

  // What one step of a variable takes of its group; all that it moves over where it is not a loop
  // that stops.
  int64_t step(const Variable& variable) const {
    const int64_t own = variable.extent * variable.fact->factor;
    if (!stops(variable)) return own;
    const int64_t lanes = variable.kind == LoopKind::vector ? kMostLanes : 1;
    return std::min(own, std::max(variable.fact->factor, lanes));
  }

  // How far readers make writers go: what is read of a buffer reaches as far as its readers' loops,
  // and a loop that stores reaches as far as what it stores into is read.
  void find_reach() {
    // What results are counted on may go through loops of which nothing is known.
    int64_t most = 1;
    for (int64_t one : request_.reach) most = std::max(most, one);
    reach_.assign(variables_.size(), most);
    for (size_t v = 0; v < variables_.size(); ++v)
      if (variables_[v].fact && group_of(*variables_[v].fact).reduced)
        reach_[v] = std::max(step(variables_[v]), most);
    read_.assign(k_.buffers.size() * request_.groups.size(), most);
    for (size_t b = 0; b < request_.globals.size(); ++b)
      for (const TrimDigit& digit : request_.globals[b])
        *read(b, digit.group) = std::max(most, request_.reach[b]);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Touch& access : accesses_) {
        for (const auto& [var, factor] : access.index.terms) {
          if (!variables_[var].fact) continue;
          int64_t* of_buffer = read(access.buffer.index(), variables_[var].fact->group);
          int64_t& from = access.store ? *of_buffer : reach_[var];
          int64_t& to = access.store ? reach_[var] : *of_buffer;
          if (to >= from) continue;
          to = from;
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
      if (!variable.fact || !group_of(*variable.fact).reduced) continue;
      const Fact& fact = *variable.fact;
      const int64_t granule = std::min(reach_[v], group_of(fact).bound);
      auto no = [&](const char* why) {
        return refuse("trim-reduced", fmt::format("{} {}", k_.vars[v].name, why));
      };
      if (!can_stop(variable)) return no("moves elsewhere too");
      const int64_t own = variable.extent * fact.factor;
      if ((granule & (granule - 1)) != 0 && granule < group_of(fact).bound)
        return no("has a step that is no power of two");
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

  ExprId end_of(int group, int64_t granule) {
    ExprId& end = ends_[std::pair(group, granule)];
    if (end.valid()) return end;
    const TrimGroup& of = request_.groups[static_cast<size_t>(group)];
    ExprId n = k_.convert(k_.load(of.extent, {k_.constant(0)}), Type::s64);
    if (granule > 1) {
      n = k_.binary(Op::floor_div, k_.binary(Op::add, n, k_.constant(granule - 1)),
                    k_.constant(granule));
      n = k_.binary(Op::mul, n, k_.constant(granule));
    }
    n = k_.binary(Op::max, k_.binary(Op::min, n, k_.constant(of.bound)), k_.constant(0));
    const VarId name = k_.add_var("limit");
    prologue_.push_back(make_let(name, n));
    return end = k_.ref(name);
  }

  // Numbers from the variable's first one to the end of the group.
  ExprId left(uint32_t var) {
    const Fact& fact = *variables_[var].fact;
    ExprId result = end_of(fact.group, reach_[var]);
    if (fact.scale != 1) result = k_.binary(Op::mul, result, k_.constant(fact.scale));
    for (const auto& [outer, times] : fact.base)
      result =
          k_.binary(Op::sub, result, k_.binary(Op::mul, k_.ref(VarId(outer)), k_.constant(times)));
    if (fact.low != 0) result = k_.binary(Op::sub, result, k_.constant(fact.low));
    return result;
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

  static void find_variables(const std::vector<Stmt>& body, std::set<uint32_t>* found) {
    for (const Stmt& stmt : body) {
      if (stmt.var.valid()) found->insert(stmt.var.value);
      find_variables(stmt.body, found);
      find_variables(stmt.otherwise, found);
    }
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
          fact.factor != 1 || fact.scale != 1 || fact.low != 0 || fact.high != 0)
        return {};
      result.insert(var);
    }
    return result;
  }

  // The last tile's rows may be few: other bodies compute a half and a quarter of a tile.
  void add_fewer_rows(Stmt* tile) {
    const Fact& fact = *variables_[tile->var.index()].fact;
    if (tile->loop != LoopKind::serial || fact.scale != 1) return;
    std::set<uint32_t> inside;
    find_variables(tile->body, &inside);
    const std::set<uint32_t> loops = written_out(*tile, inside);
    if (loops.empty()) return;
    const Kernel before = k_;
    const std::vector<Stmt> whole = tile->body;
    const ExprId rest = k_.binary(Op::sub, left(tile->var.value),
                                  k_.binary(Op::mul, k_.ref(tile->var), k_.constant(fact.factor)));
    std::vector<Stmt>* last = &tile->body;
    for (int64_t rows = fact.factor; rows >= kFewestRows && reach_[tile->var.index()] < rows;) {
      rows = (rows + 1) / 2;
      std::vector<Stmt> fewer = with_rows(before, whole, inside, loops, rows);
      *last = {
          make_if(k_.compare(Op::gt, rest, k_.constant(rows)), std::move(*last), std::move(fewer))};
      last = &last->front().otherwise;
    }
  }

  // A copy of `body`, of the kernel as it was, with so many rows written out by `loops`.
  std::vector<Stmt> with_rows(const Kernel& before, const std::vector<Stmt>& body,
                              const std::set<uint32_t>& inside, const std::set<uint32_t>& loops,
                              int64_t rows) {
    std::vector<BufferId> buffers;
    for (size_t b = 0; b < before.buffers.size(); ++b) buffers.push_back(BufferId(b));
    Graft graft(before, buffers, &k_);
    graft.exchange = [&](const Expr& expr) -> std::optional<ExprId> {
      if (expr.op != Op::var || inside.count(expr.var.value) > 0) return std::nullopt;
      return k_.ref(expr.var);
    };
    std::vector<Stmt> result = graft.block(body);
    std::set<uint32_t> copies;
    for (const uint32_t var : loops) copies.insert(graft.var(VarId(var)).value);
    shorten(&result, copies, rows);
    return result;
  }

  void shorten(std::vector<Stmt>* body, const std::set<uint32_t>& loops, int64_t extent) {
    for (Stmt& stmt : *body) {
      if (stmt.kind == StmtKind::loop && loops.count(stmt.var.value) > 0)
        stmt.extent = k_.constant(extent);
      shorten(&stmt.body, loops, extent);
      shorten(&stmt.otherwise, loops, extent);
    }
  }

  void rewrite(std::vector<Stmt>& body) {
    for (Stmt& stmt : body) {
      rewrite(stmt.body);
      rewrite(stmt.otherwise);
      if (stmt.kind != StmtKind::loop) continue;
      const Variable variable = variables_[stmt.var.index()];
      if (!stops(variable)) continue;
      const bool lanes = stmt.loop == LoopKind::vector;
      add_fewer_rows(&stmt);
      if (lanes && variable.fact->factor != 1) continue;
      const ExprId extent = trips(stmt.var.value, lanes ? stmt.lanes : 1);
      if (variable.fact->base.empty()) {  // once a task
        const VarId name = k_.add_var("trips");
        prologue_.push_back(make_let(name, extent));
        stmt.extent = k_.ref(name);
      } else {
        stmt.extent = extent;
      }
    }
  }

  void rewrite(Group& group) {
    prologue_.clear();
    ends_.clear();
    rewrite(group.body);
    for (const GridDim& dim : group.grid) {
      const Variable& variable = variables_[dim.var.index()];
      if (!stops(variable)) continue;
      const Fact& fact = *variable.fact;
      const ExprId rest = k_.binary(Op::sub, left(dim.var.value),
                                    k_.binary(Op::mul, k_.ref(dim.var), k_.constant(fact.factor)));
      group.body = {make_if(k_.compare(Op::gt, rest, k_.constant(0)), std::move(group.body))};
    }
    group.body.insert(group.body.begin(), std::make_move_iterator(prologue_.begin()),
                      std::make_move_iterator(prologue_.end()));
  }

  Kernel& k_;
  const TrimRequest& request_;
  std::vector<Variable> variables_;
  std::vector<Touch> accesses_;
  std::vector<int64_t> reach_;  // by variable: its loop stops at the extent rounded up to it
  std::vector<int64_t> read_;   // by buffer and group: the same of what is read
  std::map<std::pair<int, int64_t>, ExprId> ends_;  // in the group of tasks that is rewritten
  std::vector<Stmt> prologue_;
  Decision refused_ = Decision::yes();
};

}  // namespace

Decision trim(Kernel* kernel, const TrimRequest& request, std::vector<int64_t>* reads) {
  Facts facts;
  Decision done = find_facts(*kernel, request, &facts);
  if (!done) return done;
  Kernel trimmed = *kernel;
  Trimmer trimmer(&trimmed, request, std::move(facts));
  done = trimmer.run();
  if (!done) return done;
  *reads = trimmer.reads();
  *kernel = std::move(trimmed);
  return done;
}

}  // namespace heddle::kernel
