#include "kernel/linear.h"

#include <algorithm>

#include "kernel/lanes.h"

namespace heddle::kernel {
namespace {

// Most nodes visited for an index: named values may double its size at each use.
constexpr int kMostNodes = 4096;

int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// The expression that a variable is bound to, through all its lets.
const Expr& named(const Kernel& kernel, ExprId id, const Lets& lets) {
  const Expr* expr = &kernel.expr(id);
  for (int i = 0; lets && expr->op == Op::var && i < kMostNodes; ++i) {
    const ExprId value = lets(expr->var);
    if (!value.valid()) break;
    expr = &kernel.expr(value);
  }
  return *expr;
}

}  // namespace

void Linear::add(const Kernel& kernel, ExprId root, int64_t times, const std::vector<int64_t>& by,
                 const Lets& lets) {
  struct Part {
    ExprId id;
    int64_t factor;
    std::vector<int64_t> dims;
  };
  std::vector<Part> open = {{root, times, by}};  // the next one last
  for (int visited = 0; !open.empty(); ++visited) {
    Part part = std::move(open.back());
    open.pop_back();
    const Expr& expr = kernel.expr(part.id);
    auto go = [&](ExprId id, int64_t factor) {
      open.push_back({id, product(part.factor, factor), part.dims});
      return true;
    };
    auto look_through = [&] {
      switch (expr.op) {
        case Op::add:
        case Op::sub:
          go(expr.operands[1], expr.op == Op::add ? 1 : -1);
          return go(expr.operands[0], 1);
        case Op::neg:
          return go(expr.operands[0], -1);
        case Op::mul:
          for (size_t i = 0; i < 2; ++i) {
            const Expr& factor = named(kernel, expr.operands[i], lets);
            if (factor.op == Op::constant) return go(expr.operands[1 - i], factor.imm);
            if (factor.op != Op::dim) continue;
            part.dims.insert(std::upper_bound(part.dims.begin(), part.dims.end(), factor.imm),
                             factor.imm);
            return go(expr.operands[1 - i], 1);
          }
          return false;
        case Op::var: {
          const ExprId value = lets ? lets(expr.var) : ExprId();
          return value.valid() && go(value, 1);
        }
        case Op::constant:
          if (part.dims.empty()) constant = sum(constant, product(part.factor, expr.imm));
          return part.dims.empty();
        default:
          return false;
      }
    };
    if (visited < kMostNodes && expr.type == Type::s64 && look_through()) continue;
    const auto known = std::find_if(terms.begin(), terms.end(), [&](const Term& term) {
      return term.atom == part.id && term.dims == part.dims;
    });
    if (known != terms.end())
      known->factor = sum(known->factor, part.factor);
    else
      terms.push_back(
          {part.id, expr.op == Op::var ? expr.var : VarId(), part.factor, std::move(part.dims)});
  }
  std::erase_if(terms, [](const Term& term) { return term.factor == 0; });
}

bool Linear::is_of_variables() const {
  return std::all_of(terms.begin(), terms.end(),
                     [](const Term& term) { return term.var.valid() && term.dims.empty(); });
}

int64_t Linear::factor(VarId var) const {
  for (const Term& term : terms)
    if (term.var == var && term.dims.empty()) return term.factor;
  return 0;
}

Linear linear(const Kernel& kernel, ExprId id, const Lets& lets) {
  Linear result;
  result.add(kernel, id, 1, {}, lets);
  return result;
}

std::optional<int64_t> factor_of(const Kernel& kernel, ExprId id, VarId var) {
  const Linear form = linear(kernel, id);
  for (const Linear::Term& term : form.terms) {
    if (term.var.valid()) {
      if (term.var == var && !term.dims.empty()) return std::nullopt;
      continue;
    }
    for (ExprId below : reachable(kernel, {term.atom}))
      if (kernel.expr(below).var == var) return std::nullopt;
  }
  return form.factor(var);
}

ExprId without_constant(Kernel* kernel, ExprId id) {
  const Expr expr = kernel->expr(id);
  if (expr.type != Type::s64) return id;
  switch (expr.op) {
    case Op::constant:
      return {};
    case Op::neg: {
      const ExprId a = without_constant(kernel, expr.operands[0]);
      return a.valid() ? kernel->unary(Op::neg, a) : a;
    }
    case Op::add:
    case Op::sub: {
      const ExprId a = without_constant(kernel, expr.operands[0]);
      const ExprId b = without_constant(kernel, expr.operands[1]);
      if (!b.valid()) return a;
      if (!a.valid()) return expr.op == Op::add ? b : kernel->unary(Op::neg, b);
      return kernel->binary(expr.op, a, b);
    }
    case Op::mul:
      for (size_t i = 0; i < 2; ++i) {
        if (kernel->expr(expr.operands[i]).op != Op::constant) continue;
        const ExprId other = without_constant(kernel, expr.operands[1 - i]);
        return other.valid() ? kernel->binary(Op::mul, other, expr.operands[i]) : other;
      }
      return id;
    default:
      return id;
  }
}

}  // namespace heddle::kernel
