#include "emit/cuda/ranges.h"

#include <algorithm>
#include <limits>

#include "kernel/lanes.h"

namespace heddle::emit::cuda {

using kernel::Expr;
using kernel::ExprId;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;
using tensor::Type;

namespace {

using Wide = __int128;

// A result outside 64 bits may wrap: nothing is known of it.
IntRange made(Wide low, Wide high) {
  constexpr Wide kLeast = std::numeric_limits<int64_t>::min();
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  if (low < kLeast || high > kMost) return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

IntRange of_products(const IntRange& a, const IntRange& b) {
  const Wide all[] = {Wide{a.low} * b.low, Wide{a.low} * b.high, Wide{a.high} * b.low,
                      Wide{a.high} * b.high};
  return made(*std::min_element(all, all + 4), *std::max_element(all, all + 4));
}

IntRange of_type(Type type) {
  switch (type) {
    case Type::pred:
      return {0, 1};
    case Type::s8:
      return {-128, 127};
    case Type::u8:
      return {0, 255};
    case Type::s16:
      return {-32768, 32767};
    case Type::u16:
      return {0, 65535};
    case Type::s32:
      return {INT32_MIN, INT32_MAX};
    case Type::u32:
      return {0, UINT32_MAX};
    default:
      return {};
  }
}

int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

}  // namespace

Ranges::Ranges(const kernel::Kernel& kernel)
    : kernel_(kernel),
      exprs_(kernel.exprs().size()),
      vars_(kernel.vars.size()),
      known_(kernel.exprs().size()) {
  for (const kernel::Phase& phase : kernel.phases) {
    for (const kernel::Group& group : phase.groups) {
      for (const kernel::GridDim& dim : group.grid) bind(dim.var, dim.extent);
      visit(group.body);
    }
  }
}

void Ranges::bind(kernel::VarId var, ExprId extent) {
  compute(extent);
  const int64_t most = exprs_[extent.index()].high;
  vars_[var.index()] = {0, most == INT64_MAX ? most : std::max<int64_t>(0, most - 1)};
}

// A variable is bound before it is read, and only once.
void Ranges::visit(const std::vector<Stmt>& body) {
  for (const Stmt& stmt : body) {
    for (ExprId id : kernel::expressions(stmt)) compute(id);
    if (stmt.kind == StmtKind::loop) bind(stmt.var, stmt.extent);
    if (stmt.kind == StmtKind::let) vars_[stmt.var.index()] = exprs_[stmt.value.index()];
    visit(stmt.body);
    visit(stmt.otherwise);
  }
}

void Ranges::compute(ExprId root) {
  if (known_[root.index()]) return;
  for (ExprId id : kernel::reachable(kernel_, {root})) {
    if (known_[id.index()]) continue;
    known_[id.index()] = true;
    exprs_[id.index()] = derive(kernel_.expr(id));
  }
}

IntRange Ranges::derive(const Expr& expr) const {
  if (expr.op == Op::var) return vars_[expr.var.index()];
  if (expr.op == Op::constant && expr.type == Type::s64) return {expr.imm, expr.imm};
  if (expr.op == Op::dim) return {0, INT64_MAX};
  if (expr.type != Type::s64 || expr.operands.empty()) return of_type(expr.type);
  const IntRange a = exprs_[expr.operands[0].index()];
  const IntRange b = expr.operands.size() > 1 ? exprs_[expr.operands[1].index()] : IntRange{};
  switch (expr.op) {
    case Op::convert:
      return tensor::is_float(kernel_.expr(expr.operands[0]).type) ? IntRange{} : a;
    case Op::lane:
    case Op::shuffle_xor:
      return a;
    case Op::add:
      return made(Wide{a.low} + b.low, Wide{a.high} + b.high);
    case Op::sub:
      return made(Wide{a.low} - b.high, Wide{a.high} - b.low);
    case Op::mul:
      return of_products(a, b);
    case Op::min:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::max:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::floor_div:
      if (b.low != b.high || b.low <= 0) return {};
      return {floor_divide(a.low, b.low), floor_divide(a.high, b.low)};
    case Op::floor_mod:
      if (b.low != b.high || b.low <= 0) return {};
      return {0, b.low - 1};
    case Op::select: {
      const IntRange c = exprs_[expr.operands[2].index()];
      return {std::min(b.low, c.low), std::max(b.high, c.high)};
    }
    default:
      return {};
  }
}

}  // namespace heddle::emit::cuda
