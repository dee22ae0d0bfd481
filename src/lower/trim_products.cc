#include "lower/trim_products.h"

#include <algorithm>

namespace heddle::lower::trimming {
namespace {

using kernel::ExprId, kernel::Kernel, kernel::LoopKind, kernel::Op, kernel::Stmt, kernel::StmtKind;

constexpr int64_t kAllTrips = int64_t{1} << 30;

bool adds_only(const Kernel& k, const Stmt& stmt) {
  const auto inside = [&](const Stmt& inner) { return adds_only(k, inner); };
  if (stmt.kind == StmtKind::store) {
    const Op op = k.expr(stmt.value).op;
    if (k.buffer(stmt.buffer).space != kernel::Space::reg || (op != Op::fma && op != Op::dot))
      return false;
  }
  return std::all_of(stmt.body.begin(), stmt.body.end(), inside) &&
         std::all_of(stmt.otherwise.begin(), stmt.otherwise.end(), inside);
}

// A loop that does nothing but add up products in registers.
bool adds_products(const Kernel& k, const Stmt& stmt) {
  return stmt.kind == StmtKind::loop && stmt.loop == LoopKind::serial && adds_only(k, stmt);
}

}  // namespace

void leave_out_products(Kernel* kernel, ExprId there, std::vector<Stmt>* body) {
  for (Stmt& stmt : *body) {
    // Of trips that are not known: else it would not be written out as before.
    if (!adds_products(*kernel, stmt) || kernel->expr(stmt.extent).op == Op::constant) {
      leave_out_products(kernel, there, &stmt.body);
      leave_out_products(kernel, there, &stmt.otherwise);
      continue;
    }
    const ExprId some = kernel->binary(Op::max, there, kernel->constant(0));
    const ExprId trips = kernel->binary(Op::mul, some, kernel->constant(kAllTrips));
    stmt.extent = kernel->binary(Op::min, stmt.extent, trips);
  }
}

std::vector<Stmt> without_products(const Kernel& kernel, std::vector<Stmt> body) {
  std::vector<Stmt> result;
  for (Stmt& stmt : body) {
    if (adds_products(kernel, stmt)) continue;
    stmt.body = without_products(kernel, std::move(stmt.body));
    stmt.otherwise = without_products(kernel, std::move(stmt.otherwise));
    result.push_back(std::move(stmt));
  }
  return result;
}

}  // namespace heddle::lower::trimming
