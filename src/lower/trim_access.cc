#include "lower/trim_access.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::lower::trimming {
namespace {

using kernel::Buffer, kernel::Expr, kernel::ExprId, kernel::Group, kernel::GridDim, kernel::Op;
using kernel::Phase, kernel::Space, kernel::Stmt, kernel::StmtKind, kernel::VarId;

struct Lanes {
  VarId var;
  int64_t count = 0;
};

class Reader {
 public:
  Reader(const Kernel& kernel, const TrimRequest& request) : k_(kernel), request_(request) {}

  Refusal run() {
    if (!k_.inner.empty() || !k_.dims.empty()) {
      refused_.because("trim-form", "tables and run-time dimensions");
      return refused_;
    }
    variables_.resize(k_.vars.size());
    for (const Phase& phase : k_.phases)
      for (const Group& group : phase.groups) {
        ++group_;
        if (!look_at(group)) return refused_;
      }
    return refused_;
  }

  Accesses take() { return std::move(found_); }

 private:
  bool look_at(const Group& group) {
    int around = -1;
    for (const GridDim& dim : group.grid) {
      Variable& variable = variables_[dim.var.index()];
      variable = {around, constant(dim.extent), LoopKind::parallel, true, true, false, false, {},
                  {}};
      around = static_cast<int>(dim.var.index());
    }
    return look_at(group.body, around);
  }

  int64_t constant(ExprId id) const {
    return k_.expr(id).op == Op::constant ? k_.expr(id).imm : -1;
  }

  std::optional<Tail> tail(ExprId id) const {
    const Expr* expr = &k_.expr(id);
    if (expr->op == Op::max && constant(expr->operands[1]) == 0) expr = &k_.expr(expr->operands[0]);
    if (expr->op != Op::min || constant(expr->operands[1]) < 0) return std::nullopt;
    const Linear rest = kernel::linear(k_, expr->operands[0]);
    if (!rest.is_of_variables() || rest.terms.size() != 1 || rest.terms[0].factor >= 0)
      return std::nullopt;
    return Tail{rest.terms[0].var.value, -rest.terms[0].factor, rest.constant,
                constant(expr->operands[1])};
  }

  bool look_at(const std::vector<Stmt>& body, int around) {
    for (const Stmt& stmt : body) {
      if (stmt.kind == StmtKind::async_copy || stmt.kind == StmtKind::mma ||
          !stmt.fragments.empty())
        return refused_.because("trim-form", "asynchronous copies and matrix instructions");
      if (stmt.kind == StmtKind::prefetch) continue;
      if (stmt.kind == StmtKind::let) lets_[stmt.var.index()] = stmt.value;
      int inside = around;
      if (stmt.kind == StmtKind::loop) {
        inside = static_cast<int>(stmt.var.index());
        variables_[stmt.var.index()] = {
            around, constant(stmt.extent), stmt.loop, false, true, false, false,
            {},     tail(stmt.extent)};
      }
      std::set<uint32_t> seen;
      for (ExprId id : expressions(stmt))
        if (!look_at(id, &seen)) return false;
      if (stmt.kind == StmtKind::store && !add_access(stmt.buffer, stmt.indices, true))
        return false;
      if (!look_at_branches(stmt, inside)) return false;
    }
    return true;
  }

  bool look_at_branches(const Stmt& stmt, int around) {
    const std::optional<Lanes> before = lanes_;
    if (stmt.kind == StmtKind::branch && !lanes_) lanes_ = first_lanes(stmt.value);
    const bool ok = look_at(stmt.body, around);
    lanes_ = before;
    return ok && look_at(stmt.otherwise, around);
  }

  // `l < 4`: the first lanes of a vector loop.
  std::optional<Lanes> first_lanes(ExprId condition) const {
    if (!condition.valid()) return std::nullopt;
    const Expr& less = k_.expr(condition);
    if (less.op != Op::lt || k_.expr(less.operands[0]).op != Op::var) return std::nullopt;
    const VarId var = k_.expr(less.operands[0]).var;
    const int64_t most = constant(less.operands[1]);
    if (var.index() >= k_.vars.size() || !variables_[var.index()].bound ||
        variables_[var.index()].kind != LoopKind::vector || most < 1 ||
        most >= variables_[var.index()].extent)
      return std::nullopt;
    return Lanes{var, most};
  }

  // What the first lanes of a vector store, as the numbers that the first and the last of them add:
  // the others store nothing. The loop over the lanes itself does not stop.
  void add_lanes(Touch* access) {
    if (!lanes_ || !access->store || !is_given(access->buffer.index())) return;
    const auto term = std::find_if(access->index.terms.begin(), access->index.terms.end(),
                                   [&](const Linear::Term& one) { return one.var == lanes_->var; });
    if (term == access->index.terms.end() || term->factor < 1) return;
    const int64_t last = term->factor * (lanes_->count - 1);
    variables_[lanes_->var.index()].elsewhere = true;
    access->index.terms.erase(term);
    found_.touches.push_back(*access);
    access->index.constant += last;
  }

  bool look_at(ExprId id, std::set<uint32_t>* seen) {
    if (!id.valid() || !seen->insert(id.value).second) return true;
    const Expr& expr = k_.expr(id);
    for (ExprId operand : expr.operands)
      if (!look_at(operand, seen)) return false;
    if (expr.op != Op::load) return true;
    const size_t indices = k_.buffer(expr.buffer).extents.size();
    return add_access(expr.buffer, {expr.operands.begin(), expr.operands.begin() + indices}, false,
                      expr.operands.size() > indices ? expr.operands[indices] : ExprId());
  }

  size_t place_of(BufferId buffer) const {
    const bool scratch = k_.buffer(buffer).space == Space::scratch;
    return buffer.index() + (scratch ? group_ * k_.buffers.size() : 0);
  }

  bool add_access(BufferId buffer, const std::vector<ExprId>& indices, bool store = false,
                  ExprId mask = {}) {
    const Buffer& of = k_.buffer(buffer);
    if (of.space == Space::reg || of.space == Space::fragment) return true;
    Touch access{buffer, {}, store, place_of(buffer)};
    int64_t stride = 1;
    for (size_t i = indices.size(); i-- > 0;) {
      access.index.add(k_, indices[i], stride, {}, [&](VarId var) { return named(var); });
      name_parts(&access.index, store || !is_given(buffer.index()));
      if (!is_known(access.index)) {
        if (is_given(buffer.index()))
          for (const TrimDigit& digit : request_.globals[buffer.index()])
            if (request_.groups[static_cast<size_t>(digit.group)].reduced)
              return refused_.because("trim-index", fmt::format("an index of {}", of.name),
                                      digit.group);
        found_.opaque.insert(access.place);
        if (store || !is_given(buffer.index())) mark_elsewhere(indices[i]);
        access.index = {};
        if (!store && !is_given(buffer.index())) found_.touches.push_back(std::move(access));
        return true;
      }
      stride *= of.extents[i];
    }
    if (mask.valid() && is_given(buffer.index())) leave_out_masked(mask, buffer, &access.index);
    std::sort(access.index.terms.begin(), access.index.terms.end(),
              [](const Linear::Term& a, const Linear::Term& b) { return a.var < b.var; });
    add_lanes(&access);
    found_.touches.push_back(std::move(access));
    return true;
  }

  // Lanes that a load leaves out, `l < 8`, do not run on into the next number of a dimension.
  void leave_out_masked(ExprId mask, BufferId buffer, Linear* index) {
    const Expr& less = k_.expr(mask);
    if (less.op != Op::lt || k_.expr(less.operands[0]).op != Op::var) return;
    const VarId var = k_.expr(less.operands[0]).var;
    const int64_t most = constant(less.operands[1]);
    if (var.index() >= k_.vars.size() || most < 1 || most >= variables_[var.index()].extent) return;
    for (Linear::Term& term : index->terms) {
      if (term.var != var || term.factor < 1) continue;
      for (const TrimDigit& digit : request_.globals[buffer.index()])
        if (const int64_t inside = digit.stride / term.factor;
            most <= inside && inside < variables_[var.index()].extent) {
          term.var = part(var.value, most, false);
          break;
        }
    }
  }

  // Variables in an index that is no sum: they move where nothing is known.
  void mark_elsewhere(ExprId id) {
    const Expr& expr = k_.expr(id);
    if (expr.op == Op::var) {
      if (const ExprId value = named(expr.var); value.valid()) return mark_elsewhere(value);
      variables_[expr.var.index()].elsewhere = true;
    }
    if (expr.op == Op::load) return;  // where it reads from is looked at by itself
    for (ExprId operand : expr.operands) mark_elsewhere(operand);
  }

  ExprId named(VarId var) const {
    const auto let = lets_.find(var.index());
    return let == lets_.end() ? ExprId() : let->second;
  }

  // floor_div(v, c) and floor_mod(v, c) of a loop's variable are variables, too, as far as facts
  // go: of a loop over c numbers inside of one over the rest. So is a place that is known at run
  // time, between bounds.
  void name_parts(Linear* index, bool moves) {
    Linear named;
    named.constant = index->constant;
    for (Linear::Term term : index->terms) {
      const Expr& atom = k_.expr(term.atom);
      if (!term.var.valid() && (atom.op == Op::floor_div || atom.op == Op::floor_mod) &&
          k_.expr(atom.operands[0]).op == Op::var && constant(atom.operands[1]) > 1) {
        const uint32_t whole = k_.expr(atom.operands[0]).var.value;
        if (whole < k_.vars.size() && variables_[whole].bound && variables_[whole].extent >= 0)
          term.var = part(whole, constant(atom.operands[1]), atom.op == Op::floor_div);
      }
      if (const int64_t most = term.var.valid() ? -1 : most_of(term.atom); most >= 0) {
        if (moves) mark_elsewhere(term.atom);
        term.var = place(term.atom, most);
      }
      const auto same = std::find_if(named.terms.begin(), named.terms.end(), [&](const auto& one) {
        return term.var.valid() && one.var == term.var && one.dims == term.dims;
      });
      if (same == named.terms.end())
        named.terms.push_back(term);
      else
        same->factor += term.factor;
    }
    *index = std::move(named);
  }

  VarId part(uint32_t whole, int64_t size, bool outer) {
    const auto [known, added] =
        found_.parts.try_emplace({whole, size, outer}, static_cast<uint32_t>(variables_.size()));
    if (added) {
      const int64_t extent = variables_[whole].extent;
      Variable& variable = variables_.emplace_back();
      variable.parent = static_cast<int>(whole);
      variable.extent = outer ? (extent + size - 1) / size : std::min(extent, size);
      variable.bound = true;
    }
    return VarId(known->second);
  }

  // The bound of a value that is at least 0, as places of boxes are written; -1: there is none.
  int64_t most_of(ExprId id) const {
    const Expr& atom = k_.expr(id);
    if (atom.op != Op::min || constant(atom.operands[1]) < 0) return -1;
    const Expr& least = k_.expr(atom.operands[0]);
    return least.op == Op::max && constant(least.operands[1]) >= 0 ? constant(atom.operands[1])
                                                                   : -1;
  }

  VarId place(ExprId atom, int64_t most) {
    const auto [known, added] =
        places_.try_emplace(atom.value, static_cast<uint32_t>(variables_.size()));
    if (added) {
      Variable& variable = variables_.emplace_back();
      variable.extent = most + 1;
      variable.bound = variable.elsewhere = variable.known_static = true;
    }
    return VarId(known->second);
  }

  // Of variables of loops and grids.
  bool is_known(const Linear& index) const {
    return index.is_of_variables() &&
           std::all_of(index.terms.begin(), index.terms.end(), [&](const Linear::Term& term) {
             return variables_[term.var.index()].bound;
           });
  }

  bool is_given(size_t buffer) const { return buffer < request_.globals.size(); }

  const Kernel& k_;
  const TrimRequest& request_;
  Accesses found_;
  std::vector<Variable>& variables_ = found_.variables;
  size_t group_ = 0;  // of tasks, that is looked at; from 1
  std::map<size_t, ExprId> lets_;
  std::map<uint32_t, uint32_t> places_;  // variables behind those of the kernel, by atom
  std::optional<Lanes> lanes_;           // that alone run what is looked at
  Refusal refused_;
};

}  // namespace

Refusal find_accesses(const Kernel& kernel, const TrimRequest& request, Accesses* accesses) {
  Reader reader(kernel, request);
  Refusal refused = reader.run();
  if (!refused) *accesses = reader.take();
  return refused;
}

std::optional<int64_t> most_of(const Linear& index, const std::vector<Variable>& variables,
                               const std::function<bool(const Linear::Term&)>& counts) {
  // The loop over tiles of which this one goes through one, if they are one behind the other: both
  // together end where the last one is cut.
  const auto tile_of = [&](const Linear::Term& term) {
    const std::optional<Tail>& tail = variables[term.var.index()].tail;
    return std::find_if(index.terms.begin(), index.terms.end(), [&](const Linear::Term& other) {
      return tail && other.var.value == tail->outer && other.factor == term.factor * tail->factor;
    });
  };
  int64_t most = 0;
  for (auto term = index.terms.begin(); term != index.terms.end(); ++term) {
    if (!counts(*term)) continue;
    const Variable& variable = variables[term->var.index()];
    if (variable.most() < 0) return std::nullopt;
    const auto is_in = [&](const Linear::Term& other) {
      return counts(other) && tile_of(other) == term;
    };
    const auto tile = tile_of(*term);
    if (tile != index.terms.end() && counts(*tile))
      most += term->factor * (variable.tail->limit - 1);
    else if (std::none_of(index.terms.begin(), index.terms.end(), is_in))
      most += term->factor * (variable.most() - 1);
  }
  return most;
}

}  // namespace heddle::lower::trimming
