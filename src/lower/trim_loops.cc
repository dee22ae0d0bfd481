#include "lower/trim_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "kernel/rewriter.h"
#include "lower/trim_access.h"

namespace heddle::lower::trimming {
namespace {

using kernel::ExprId, kernel::GridDim, kernel::Group, kernel::Op, kernel::Phase, kernel::Stmt;
using kernel::StmtKind, kernel::VarId;

constexpr int kMostRounds = 4;  // one for each dynamic dimension of a loop over several

// By variable: how many of its numbers are one of the outer dimension.
using Inner = std::map<uint32_t, int64_t>;

// Of the dynamic dimensions that a variable runs through and beyond, the innermost.
void find(const Touch& touch, const TrimRequest& request, const std::vector<Variable>& variables,
          Inner* found) {
  const std::vector<TrimDigit>& digits = request.globals[touch.buffer.index()];
  for (const kernel::Linear::Term& term : touch.index.terms) {
    const Variable& variable = variables[term.var.index()];
    const bool is_loop = variable.grid || variable.kind == LoopKind::serial;
    if (!is_loop || variable.extent < 2 || term.factor <= 0) continue;
    for (const TrimDigit& digit : digits) {
      const int64_t all = digit.stride * request.groups[static_cast<size_t>(digit.group)].bound;
      const int64_t inner = all / term.factor;
      const bool beyond = all % term.factor == 0 && inner > 1 && variable.extent > inner &&
                          variable.extent % inner == 0;
      if (!beyond) continue;
      int64_t& known = found->emplace(term.var.value, inner).first->second;
      known = std::min(known, inner);
    }
  }
}

class Splitter {
 public:
  Splitter(Kernel* kernel, const Inner& inner) : k_(*kernel) {
    for (const auto& [var, size] : inner)
      loops_.emplace(var, Loops{k_.add_var("s"), k_.add_var("r"), size});
  }

  void run() {
    kernel::Rewriter rewriter(&k_);
    for (const auto& [var, loops] : loops_) {
      const ExprId first = k_.binary(Op::mul, k_.ref(loops.outer), k_.constant(loops.size));
      rewriter.replace(VarId(var), k_.binary(Op::add, first, k_.ref(loops.inner)));
    }
    rewriter.instead = [&](ExprId, const kernel::Expr& expr) { return part(expr); };
    rewriter.run();
    for (Phase& phase : k_.phases)
      for (Group& group : phase.groups) {
        split_grid(&group);
        split(&group.body);
      }
  }

 private:
  struct Loops {
    VarId outer, inner;
    int64_t size;  // of the inner one
  };

  // Quotient and remainder by the inner loop's size are the two loops' variables.
  std::optional<ExprId> part(const kernel::Expr& expr) {
    if (expr.op != Op::floor_div && expr.op != Op::floor_mod) return std::nullopt;
    const kernel::Expr& of = k_.expr(expr.operands[0]);
    if (of.op != Op::var) return std::nullopt;
    const auto found = loops_.find(of.var.value);
    if (found == loops_.end()) return std::nullopt;
    return k_.ref(expr.op == Op::floor_div ? found->second.outer : found->second.inner);
  }

  void split_grid(Group* group) {
    std::vector<GridDim> grid;
    for (const GridDim& dim : group->grid) {
      const auto found = loops_.find(dim.var.value);
      if (found == loops_.end()) {
        grid.push_back(dim);
        continue;
      }
      const Loops& loops = found->second;
      grid.push_back({loops.outer, k_.constant(k_.expr(dim.extent).imm / loops.size)});
      grid.push_back({loops.inner, k_.constant(loops.size)});
    }
    group->grid = std::move(grid);
  }

  void split(std::vector<Stmt>* body) {
    for (Stmt& stmt : *body) {
      split(&stmt.body);
      split(&stmt.otherwise);
      if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::serial) continue;
      const auto found = loops_.find(stmt.var.value);
      if (found == loops_.end()) continue;
      const Loops& loops = found->second;
      const int64_t outers = k_.expr(stmt.extent).imm / loops.size;
      Stmt inside =
          make_loop(LoopKind::serial, loops.inner, k_.constant(loops.size), std::move(stmt.body));
      stmt.body.clear();
      stmt.body.push_back(std::move(inside));
      stmt.var = loops.outer;
      stmt.extent = k_.constant(outers);
    }
  }

  Kernel& k_;
  std::map<uint32_t, Loops> loops_;
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
    // What takes another part of a variable could not be told from it any more.
    std::erase_if(inner, [&](const auto& one) {
      return one.first >= kernel->vars.size() ||
             std::any_of(accesses.parts.begin(), accesses.parts.end(), [&](const auto& part) {
               return part.first.whole == one.first && part.first.size != one.second;
             });
    });
    if (inner.empty()) return;
    Splitter(kernel, inner).run();
  }
}

}  // namespace heddle::lower::trimming
