#include "lower/trim_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::lower::trimming {
namespace {

using kernel::Buffer, kernel::Expr, kernel::ExprId, kernel::Group, kernel::GridDim, kernel::Op;
using kernel::Phase, kernel::Space, kernel::Stmt, kernel::StmtKind, kernel::VarId;

class Finder {
 public:
  Finder(const Kernel& kernel, const TrimRequest& request) : k_(kernel), request_(request) {}

  Decision run() {
    if (!k_.inner.empty() || !k_.dims.empty())
      return Decision::no("trim-form", "tables and run-time dimensions");
    variables_.resize(k_.vars.size());
    size_t groups = 0;
    for (const Phase& phase : k_.phases) groups += phase.groups.size();
    digits_.resize(k_.buffers.size() * (groups + 1));
    for (size_t b = 0; b < request_.globals.size(); ++b) {
      for (const TrimDigit& digit : request_.globals[b]) {
        const TrimGroup& group = request_.groups[static_cast<size_t>(digit.group)];
        digits_[b].push_back({digit.stride, group.bound, group.bound, digit.group, {}, 0, false});
      }
      sort(&digits_[b]);
    }
    for (const Phase& phase : k_.phases)
      for (const Group& group : phase.groups) {
        ++group_;
        if (!look_at(group)) return refused_;
      }
    return find_facts() ? Decision::yes() : refused_;
  }

  Facts take() { return {std::move(variables_), std::move(accesses_)}; }

 private:
  bool refuse(const char* code, std::string what) {
    refused_ = Decision::no(code, "{}", std::move(what));
    return false;
  }

  static void sort(std::vector<Digit>* digits) {
    std::sort(digits->begin(), digits->end(),
              [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  }

  // --- what is there -------------------------------------------------------------------------

  bool look_at(const Group& group) {
    int around = -1;
    for (const GridDim& dim : group.grid) {
      Variable& variable = variables_[dim.var.index()];
      variable = {around, constant(dim.extent), LoopKind::parallel, true, true, false, false, {}};
      around = static_cast<int>(dim.var.index());
    }
    return look_at(group.body, around);
  }

  int64_t constant(ExprId id) const {
    return k_.expr(id).op == Op::constant ? k_.expr(id).imm : -1;
  }

  bool look_at(const std::vector<Stmt>& body, int around) {
    for (const Stmt& stmt : body) {
      if (stmt.kind == StmtKind::async_copy || stmt.kind == StmtKind::mma ||
          !stmt.fragments.empty())
        return refuse("trim-form", "asynchronous copies and matrix instructions");
      if (stmt.kind == StmtKind::prefetch) continue;
      if (stmt.kind == StmtKind::let) lets_[stmt.var.index()] = stmt.value;
      int inside = around;
      if (stmt.kind == StmtKind::loop) {
        inside = static_cast<int>(stmt.var.index());
        variables_[stmt.var.index()] = {
            around, constant(stmt.extent), stmt.loop, false, true, false, {}};
      }
      std::set<uint32_t> seen;
      for (ExprId id : expressions(stmt))
        if (!look_at(id, &seen)) return false;
      if (stmt.kind == StmtKind::store && !add_access(stmt.buffer, stmt.indices, true))
        return false;
      if (!look_at(stmt.body, inside) || !look_at(stmt.otherwise, inside)) return false;
    }
    return true;
  }

  bool look_at(ExprId id, std::set<uint32_t>* seen) {
    if (!id.valid() || !seen->insert(id.value).second) return true;
    const Expr& expr = k_.expr(id);
    for (ExprId operand : expr.operands)
      if (!look_at(operand, seen)) return false;
    if (expr.op != Op::load) return true;
    const size_t indices = k_.buffer(expr.buffer).extents.size();
    return add_access(expr.buffer, {expr.operands.begin(), expr.operands.begin() + indices});
  }

  size_t place_of(BufferId buffer) const {
    const bool scratch = k_.buffer(buffer).space == Space::scratch;
    return buffer.index() + (scratch ? group_ * k_.buffers.size() : 0);
  }

  bool add_access(BufferId buffer, const std::vector<ExprId>& indices, bool store = false) {
    const Buffer& of = k_.buffer(buffer);
    if (of.space == Space::reg || of.space == Space::fragment) return true;
    Touch access{buffer, {}, store, place_of(buffer)};
    int64_t stride = 1;
    for (size_t i = indices.size(); i-- > 0;) {
      access.index.add(k_, indices[i], stride, {}, [&](VarId var) { return named(var); });
      if (!is_known(access.index)) {
        for (const Digit& digit : digits_[access.place])
          if (request_.groups[static_cast<size_t>(digit.group)].reduced)
            return refuse("trim-index", fmt::format("an index of {}", of.name));
        opaque_.insert(access.place);
        if (store || !is_given(buffer.index())) mark_elsewhere(indices[i]);
        return true;
      }
      stride *= of.extents[i];
    }
    std::sort(access.index.terms.begin(), access.index.terms.end(),
              [](const Linear::Term& a, const Linear::Term& b) { return a.var < b.var; });
    accesses_.push_back(std::move(access));
    return true;
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

  // Of variables of loops and grids.
  bool is_known(const Linear& index) const {
    return index.is_of_variables() &&
           std::all_of(index.terms.begin(), index.terms.end(), [&](const Linear::Term& term) {
             return variables_[term.var.index()].bound;
           });
  }

  // --- groups of variables -------------------------------------------------------------------

  // The parts of an index in each digit (in numbers, not in elements); `rest`: the variables that
  // move elsewhere. None: they do not line up.
  std::optional<std::vector<Linear>> split(const Linear& index, const std::vector<Digit>& digits,
                                           std::vector<uint32_t>* rest) const {
    std::vector<Linear> parts(digits.size());
    for (const Linear::Term& term : index.terms) {
      const int64_t factor = term.factor;
      if (factor < 0) return std::nullopt;
      size_t d = 0;
      while (d < digits.size() && factor < digits[d].stride) ++d;
      const Variable& variable = variables_[term.var.index()];
      const bool scratch = d < digits.size() && digits[d].scratch;
      if (d == digits.size() || factor / digits[d].stride >= digits[d].extent ||
          (scratch && !variable.fact && (variable.known_static || variable.elsewhere))) {
        rest->push_back(term.var.value);
        continue;
      }
      if (factor % digits[d].stride != 0) return std::nullopt;
      parts[d].terms.push_back(term);
      parts[d].terms.back().factor = factor / digits[d].stride;
    }
    if (index.constant < 0) return std::nullopt;
    for (size_t d = 0; d < digits.size(); ++d) {
      int64_t below = index.constant % digits[d].stride;
      for (const Linear::Term& term : index.terms) {
        if (term.factor >= digits[d].stride) continue;
        const int64_t extent = variables_[term.var.index()].extent;
        if (extent < 0) return std::nullopt;
        below += term.factor * (extent - 1);
      }
      if (below >= digits[d].stride) return std::nullopt;
      const int64_t number = index.constant / digits[d].stride;
      parts[d].constant = number % digits[d].round;
    }
    return parts;
  }

  bool is_around(uint32_t outer, uint32_t var) const {
    for (int at = variables_[var].parent; at >= 0; at = variables_[static_cast<size_t>(at)].parent)
      if (static_cast<uint32_t>(at) == outer) return true;
    return false;
  }

  // But for variables that have one value, 0.
  bool same_base(const Terms& a, const Terms& b) const {
    const auto all_in = [&](const Terms& terms, const Terms& others) {
      return std::all_of(terms.begin(), terms.end(), [&](const auto& term) {
        const auto found = others.find(term.first);
        return variables_[term.first].extent == 1 ||
               (found != others.end() && found->second == term.second);
      });
    };
    return all_in(a, b) && all_in(b, a);
  }

  // What a part of an index says of a variable; false: it is at odds with what is known.
  bool learn(uint32_t var, int64_t factor, const Linear& part, const Digit& digit, bool* changed,
             int64_t scale = 1) {
    Fact fact{digit.group, factor, scale, {}, 0, 0};
    auto add = [&](uint32_t outer, int64_t times) {
      if (outer != var && times != 0 && is_around(outer, var)) fact.base[outer] += times;
    };
    for (const Linear::Term& term : part.terms) add(term.var.value, term.factor);
    for (const auto& [outer, times] : digit.base) add(outer, times);
    fact.low = fact.high = part.constant + digit.first;
    std::optional<Fact>& known = variables_[var].fact;
    if (!known) {
      known = fact;
      *changed = true;
      return true;
    }
    if (known->group != fact.group || known->scale != fact.scale || known->factor != fact.factor ||
        !same_base(known->base, fact.base))
      return false;
    *changed = *changed || fact.low < known->low || fact.high > known->high;
    known->low = std::min(known->low, fact.low);
    known->high = std::max(known->high, fact.high);
    return true;
  }

  bool find_facts() {
    bool changed = true;
    for (int round = 0; changed && round < 8; ++round) {
      changed = false;
      // First what the given buffers say, then which digits scratch has, then what these say.
      for (const Touch& access : accesses_)
        if (is_given(access.buffer.index()) && !read_digits(access, &changed)) return false;
      for (const Touch& access : accesses_)
        if (!is_given(access.buffer.index()) && !find_digits(access, &changed)) return false;
      for (const Touch& access : accesses_)
        if (!is_given(access.buffer.index()) && !read_digits(access, &changed)) return false;
    }
    for (const Touch& access : accesses_)
      if (!is_given(access.buffer.index()) && opaque_.count(access.place) &&
          !digits_[access.place].empty() && !give_up(access))
        return false;
    return true;
  }

  bool is_given(size_t buffer) const {
    return buffer < request_.globals.size();  // inputs and outputs; behind them are workspaces
  }

  bool read_digits(const Touch& access, bool* changed) {
    const std::vector<Digit>& digits = digits_[access.place];
    std::vector<uint32_t> rest;
    const auto parts = split(access.index, digits, &rest);
    if (!parts) return read_as_one(access, changed);
    for (size_t d = 0; d < digits.size(); ++d) {
      const Linear& part = (*parts)[d];
      if (crosses(part, digits[d], access.buffer)) {
        if (request_.groups[static_cast<size_t>(digits[d].group)].reduced)
          return refuse("trim-reduced", fmt::format("a loop over {} runs over several dimensions",
                                                    k_.buffer(access.buffer).name));
        for (const Linear::Term& term : part.terms) variables_[term.var.index()].elsewhere = true;
        continue;
      }
      for (const Linear::Term& term : part.terms)
        if (!learn(term.var.value, term.factor, part, digits[d], changed))
          variables_[term.var.index()].elsewhere = true;
    }
    if (!is_given(access.buffer.index())) return true;
    for (uint32_t var : rest) {
      variables_[var].known_static = true;
      if (access.store) variables_[var].elsewhere = true;
    }
    return true;
  }

  // Where loops run through a dimension and what is inside of it in one, as over flat arrays, the
  // elements count, if nothing is outside of that dimension.
  bool read_as_one(const Touch& access, bool* changed) {
    const size_t b = access.buffer.index();
    const std::vector<Digit>& digits = digits_[b];
    if (!is_given(b)) return give_up(access);
    for (const Digit& digit : digits)
      if (request_.groups[static_cast<size_t>(digit.group)].reduced)
        return refuse("trim-digit", k_.buffer(access.buffer).name);
    int64_t elems = 1;
    for (int64_t extent : k_.buffer(access.buffer).extents) elems *= extent;
    const bool flat = digits.size() == 1 && digits[0].stride * digits[0].extent == elems;
    for (const Linear::Term& term : access.index.terms) {
      if (term.factor <= 0 || !flat ||
          !learn(term.var.value, term.factor, access.index, digits[0], changed, digits[0].stride))
        if (access.store) variables_[term.var.index()].elsewhere = true;
    }
    return true;
  }

  // Nothing is known of this scratch: it does not matter where nothing is reduced.
  bool give_up(const Touch& access) {
    const size_t b = access.place;
    std::vector<int> groups;
    for (const Digit& digit : digits_[b]) groups.push_back(digit.group);
    for (const Linear::Term& term : access.index.terms)
      if (const auto& fact = variables_[term.var.index()].fact) groups.push_back(fact->group);
    for (int group : groups)
      if (request_.groups[static_cast<size_t>(group)].reduced)
        return refuse("trim-digit", k_.buffer(access.buffer).name);
    digits_[b].clear();
    unknown_.insert(b);
    return true;
  }

  // Whether a part of an index runs from one round of its digit into the next: then its variables
  // say nothing of what is in the padding.
  bool crosses(const Linear& part, const Digit& digit, BufferId buffer) const {
    int64_t most = part.constant, elems = 1;
    for (const Linear::Term& term : part.terms)
      most += term.factor * std::max<int64_t>(variables_[term.var.index()].extent - 1, 0);
    for (int64_t extent : k_.buffer(buffer).extents) elems *= extent;
    return most >= digit.extent && digit.stride * digit.extent < elems;
  }

  // Digits of scratch, from the variables that are known.
  bool find_digits(const Touch& access, bool* changed) {
    std::vector<Digit>& digits = digits_[access.place];
    if (unknown_.count(access.place)) return true;
    for (const Linear::Term& term : access.index.terms) {
      const int64_t factor = term.factor;
      const Variable& variable = variables_[term.var.index()];
      const std::optional<Fact>& fact = variable.fact;
      if (!fact || variable.elsewhere) continue;
      if (factor < 0 || factor % fact->factor != 0 || fact->scale != 1) return give_up(access);
      const int64_t stride = factor / fact->factor;
      const auto known = std::find_if(digits.begin(), digits.end(),
                                      [&](const Digit& d) { return d.stride == stride; });
      const int64_t first = fact->low - access.index.constant / stride;
      if (known != digits.end()) {
        if (known->group != fact->group) return give_up(access);
        // Used for several pieces: what stands in it begins with the first of them.
        if (access.index.constant < stride && first < known->first) {
          known->first = first;
          *changed = true;
        }
        continue;
      }
      Digit digit{stride, 0, INT64_MAX, fact->group, {}, first, true};
      for (const auto& [outer, times] : fact->base) {
        if (access.index.factor(VarId(outer)) != times * stride) digit.base[outer] = times;
      }
      digits.push_back(digit);
      sort(&digits);
      for (size_t d = 1; d < digits.size(); ++d)
        digits[d].round = digits[d - 1].stride / digits[d].stride;
      *changed = true;
    }
    for (Digit& digit : digits) widen(access, &digit);
    return true;
  }

  void widen(const Touch& access, Digit* digit) const {
    int64_t first = digit->first, reach = 0, step = INT64_MAX;
    for (const Linear::Term& term : access.index.terms) {
      const Variable& variable = variables_[term.var.index()];
      if (!variable.fact || variable.elsewhere || variable.fact->group != digit->group ||
          term.factor != variable.fact->factor * digit->stride)
        continue;
      if (variable.extent < 0) reach = INT64_MAX / 4;
      first = std::max(first, variable.fact->low);
      reach += variable.fact->factor * (variable.extent - 1);
      step = std::min(step, variable.fact->factor);
    }
    if (step == INT64_MAX) return;
    reach += step + first - digit->first;  // what moves inside of a step may not be known
    digit->extent = std::min(digit->round, std::max(digit->extent, reach));
  }

  const Kernel& k_;
  const TrimRequest& request_;
  std::vector<Variable> variables_;
  size_t group_ = 0;                        // of tasks, that is looked at; from 1
  std::vector<std::vector<Digit>> digits_;  // by place, the outermost first
  std::map<size_t, ExprId> lets_;
  std::vector<Touch> accesses_;
  std::set<size_t> opaque_;   // places with an index that is no sum
  std::set<size_t> unknown_;  // scratch whose digits cannot be told
  Decision refused_ = Decision::yes();
};

}  // namespace

Decision find_facts(const Kernel& kernel, const TrimRequest& request, Facts* facts) {
  Finder finder(kernel, request);
  Decision done = finder.run();
  if (done) *facts = finder.take();
  return done;
}

}  // namespace heddle::lower::trimming
