#include "lower/trim_loops.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "lower/trim_access.h"

namespace heddle::lower::trimming {
namespace {

using kernel::ExprId, kernel::GridDim, kernel::Group, kernel::Op, kernel::Phase, kernel::Stmt;
using kernel::StmtKind, kernel::VarId;

constexpr int kMostRounds = 4;  // one more for each dimension of a loop over several

// By variable: how many of its numbers are one of the outer dimension.
using Inner = std::map<uint32_t, int64_t>;

// Of the dimensions that a variable runs through, the innermost with another one inside of it.
void find(const Touch& touch, const TrimRequest& request, const std::vector<Variable>& variables,
          Inner* found) {
  const std::vector<TrimDigit>& digits = request.globals[touch.buffer.index()];
  for (const kernel::Linear::Term& term : touch.index.terms) {
    const Variable& variable = variables[term.var.index()];
    const bool is_loop = variable.grid || variable.kind == LoopKind::serial;
    if (!is_loop || variable.extent < 2 || term.factor <= 0) continue;
    for (const TrimDigit& outer : digits) {
      const int64_t inner = outer.stride / term.factor;
      const bool through = outer.stride % term.factor == 0 && inner > 1 &&
                           variable.extent > inner && variable.extent % inner == 0;
      const bool both = std::any_of(digits.begin(), digits.end(), [&](const TrimDigit& digit) {
        return digit.group != outer.group && digit.stride >= term.factor &&
               digit.stride < outer.stride;
      });
      if (!through || !both) continue;
      int64_t& known = found->emplace(term.var.value, inner).first->second;
      known = std::min(known, inner);
    }
  }
}

class Splitter {
 public:
  Splitter(Kernel* kernel, const Inner& inner) : k_(*kernel), inner_(inner) {}

  void run() {
    for (Phase& phase : k_.phases)
      for (Group& group : phase.groups) {
        split_grid(&group);
        split(&group.body);
      }
  }

 private:
  Stmt name(VarId whole, VarId outer, VarId inner, int64_t size) {
    const ExprId first = k_.binary(Op::mul, k_.ref(outer), k_.constant(size));
    return make_let(whole, k_.binary(Op::add, first, k_.ref(inner)));
  }

  void split_grid(Group* group) {
    std::vector<GridDim> grid;
    std::vector<Stmt> names;
    for (const GridDim& dim : group->grid) {
      const auto found = inner_.find(dim.var.value);
      if (found == inner_.end()) {
        grid.push_back(dim);
        continue;
      }
      const VarId outer = k_.add_var("s"), inner = k_.add_var("r");
      grid.push_back({outer, k_.constant(k_.expr(dim.extent).imm / found->second)});
      grid.push_back({inner, k_.constant(found->second)});
      names.push_back(name(dim.var, outer, inner, found->second));
    }
    group->grid = std::move(grid);
    std::move(group->body.begin(), group->body.end(), std::back_inserter(names));
    group->body = std::move(names);
  }

  void split(std::vector<Stmt>* body) {
    for (Stmt& stmt : *body) {
      split(&stmt.body);
      split(&stmt.otherwise);
      if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial) continue;
      const auto found = inner_.find(stmt.var.value);
      if (found == inner_.end()) continue;
      const VarId outer = k_.add_var("s"), inner = k_.add_var("r");
      const int64_t outers = k_.expr(stmt.extent).imm / found->second;
      std::vector<Stmt> inside{name(stmt.var, outer, inner, found->second)};
      std::move(stmt.body.begin(), stmt.body.end(), std::back_inserter(inside));
      stmt.body = {
          make_loop(LoopKind::serial, inner, k_.constant(found->second), std::move(inside))};
      stmt.var = outer;
      stmt.extent = k_.constant(outers);
    }
  }

  Kernel& k_;
  const Inner& inner_;
};

}  // namespace

void split_loops(Kernel* kernel, const TrimRequest& request) {
  for (int round = 0; round < kMostRounds; ++round) {
    Accesses accesses;
    if (find_accesses(*kernel, request, &accesses)) return;  // trim will say why
    Inner inner;
    for (const Touch& touch : accesses.touches)
      if (touch.buffer.index() < request.globals.size())
        find(touch, request, accesses.variables, &inner);
    std::erase_if(inner, [&](const auto& one) { return one.first >= kernel->vars.size(); });
    if (inner.empty()) return;
    Splitter(kernel, inner).run();
  }
}

}  // namespace heddle::lower::trimming
