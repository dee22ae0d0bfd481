#include <algorithm>
#include <numeric>

#include "kernel/lanes.h"
#include "kernel/random_builder.h"

namespace heddle::kernel {

// The scope becomes that of the loop's body.
RandomBuilder::Loop RandomBuilder::new_loop(LoopKind kind, Extent extent, Scope& scope,
                                            int unroll_percent) {
  Loop loop;
  loop.extent = extent;
  loop.var.id = k_.add_var(kind == LoopKind::unrolled ? "j" : kind == LoopKind::vector ? "c" : "i");
  loop.var.high = extent.number - 1;
  loop.var.is_unrolled = kind == LoopKind::unrolled;
  int lanes = 0, unroll = 1;
  if (kind == LoopKind::vector) {
    lanes = scope.lanes = lanes_;
    scope.all_active = extent.stored >= 0 && extent.stored % lanes == 0;
  }
  if (kind == LoopKind::unrolled) scope.copies *= std::max<int64_t>(1, extent.number);
  if (kind == LoopKind::serial && chance(unroll_percent)) unroll = static_cast<int>(between(2, 5));
  scope.vars.push_back(loop.var);
  loop.stmt = make_loop(kind, loop.var.id, extent_expr(extent), {}, lanes, unroll);
  return loop;
}

void RandomBuilder::add_let(std::vector<Stmt>& to, Scope& scope) {
  Type type = arithmetic_type();
  ExprId value = expr(type, scope, 3);
  VarId var = k_.add_var("v", type);
  to.push_back(make_let(var, value));
  scope.vars.push_back({var});
}

void RandomBuilder::add_prefetch(std::vector<Stmt>& to, const Scope& scope) {
  std::vector<Source*> sources = readable(Type::f32, scope);
  std::erase_if(sources, [&](Source* s) { return k_.buffer(s->id).space == Space::reg; });
  if (sources.empty()) return;
  Source& source = *pick(sources);
  Stmt stmt{StmtKind::prefetch};
  stmt.buffer = source.id;
  for (Extent extent : source.extents) stmt.indices.push_back(index(extent, scope, false));
  stmt.indices.back() = k_.binary(Op::add, stmt.indices.back(), k_.constant(below(40)));
  stmt.level = static_cast<int>(between(1, 3));
  stmt.for_write = chance(20);
  to.push_back(stmt);
}

// Stores target[leading, last] on every path.
std::vector<Stmt> RandomBuilder::element_body(Source& target, std::vector<ExprId> leading,
                                              Scope scope, ExprId last, bool rough) {
  std::vector<Stmt> body;
  leading.push_back(last);
  Type type = k_.buffer(target.id).type;
  auto store = [&](const Scope& where) {
    Stmt stmt = make_store(target.id, leading, rough ? function(where) : expr(type, where, 4));
    stmt.streaming = k_.buffer(target.id).space == Space::global && chance(10);
    return stmt;
  };
  while (chance(30)) add_let(body, scope);
  if (chance(10)) add_prefetch(body, scope);
  if (!chance(15)) {
    body.push_back(store(scope));
    return body;
  }
  ExprId condition = pred_expr(scope, 2);
  Scope inner = scope;
  if (inner.lanes > 0) inner.all_active = false;
  Stmt then = store(inner), otherwise = store(inner);
  body.push_back(make_if(condition, {then}, {otherwise}));
  return body;
}

// In [0, extent), distinct for distinct values of the loop's variable; the loop's extent must fit.
ExprId RandomBuilder::scatter_index(const Scope& scope, const Loop& element, Extent extent) {
  ExprId var = k_.ref(element.var.id), size = extent_expr(extent);
  switch (below(4)) {
    case 0:
      return k_.binary(Op::sub, k_.binary(Op::sub, size, var), k_.constant(1));
    case 1: {
      int64_t factor = between(2, 9);
      if (extent.stored < 0 || std::gcd(factor, extent.number) != 1) return var;
      ExprId at =
          k_.binary(Op::add, k_.binary(Op::mul, var, k_.constant(factor)), k_.constant(below(5)));
      return k_.binary(Op::floor_mod, at, size);
    }
    default:
      return var;
  }
}

// A store into a buffer that is readable already, so that it need not reach every element.
bool RandomBuilder::work_store(std::vector<Stmt>& to, const Scope& scope, const Loop& element) {
  std::vector<Source*> targets;
  for (std::deque<Source>* list : {&globals_, &locals_}) {
    for (Source& source : *list) {
      const Buffer& buffer = k_.buffer(source.id);
      if (!source.readable || source.rough) continue;
      if (buffer.space == Space::global && (!source.own || buffer.access == Access::in)) continue;
      if (buffer.space == Space::reg) {
        if (buffer.lanes != scope.lanes) continue;
      } else if (source.extents.back().number < element.extent.number) {
        continue;
      }
      targets.push_back(&source);
    }
  }
  if (targets.empty()) return false;
  Source& target = *pick(targets);
  const Buffer& buffer = k_.buffer(target.id);
  std::vector<ExprId> indices;
  if (target.own) indices = place_;
  for (size_t axis = indices.size(); axis < target.extents.size(); ++axis) {
    Extent extent = target.extents[axis];
    bool last = axis + 1 == target.extents.size();
    if (buffer.space == Space::reg)
      indices.push_back(register_index(extent.number, scope));
    else
      indices.push_back(last ? scatter_index(scope, element, extent) : index(extent, scope, false));
  }
  Type type = buffer.type;
  ExprId value = expr(type, scope, 3);
  if (buffer.space == Space::reg && type != Type::pred && chance(60)) {  // accumulate
    ExprId old = k_.load(target.id, indices);
    if (tensor::is_float(type) && chance(50))
      value = k_.fma(value, expr(type, scope, 2), old);
    else
      value = k_.binary(Op::add, old, value);
  }
  to.push_back(make_store(target.id, indices, value, chance(30) ? pred_expr(scope, 2) : ExprId()));
  return true;
}

void RandomBuilder::work_stmt(std::vector<Stmt>& to, Scope& scope, const Loop& element, int depth) {
  if (chance(20)) return add_let(to, scope);
  if (chance(5)) return add_prefetch(to, scope);
  if (depth > 0 && chance(20)) {
    ExprId condition = pred_expr(scope, 2);
    Scope inner = scope;
    if (inner.lanes > 0) inner.all_active = false;
    std::vector<Stmt> then = work_body(inner, element, depth - 1);
    std::vector<Stmt> otherwise;
    if (chance(50)) otherwise = work_body(inner, element, depth - 1);
    to.push_back(make_if(condition, std::move(then), std::move(otherwise)));
    return;
  }
  if (depth > 0 && chance(25)) {
    Scope inner = scope;
    bool unrolled = scope.copies < 16 && chance(50);
    int64_t few = between(1, 4);
    Loop loop = new_loop(unrolled ? LoopKind::unrolled : LoopKind::serial,
                         unrolled ? Extent{few, few} : draw_extent(1, 5), inner, 40);
    loop.stmt.body = work_body(inner, element, depth - 1);
    to.push_back(std::move(loop.stmt));
    return;
  }
  work_store(to, scope, element);
}

std::vector<Stmt> RandomBuilder::work_body(Scope scope, const Loop& element, int depth) {
  std::vector<Stmt> body;
  for (int64_t i = between(1, 3); i > 0; --i) work_stmt(body, scope, element, depth);
  return body;
}

}  // namespace heddle::kernel
