#include <algorithm>
#include <cmath>
#include <set>

#include "kernel/op_info.h"
#include "kernel/random_builder.h"
#include "kernel/scalar.h"

namespace heddle::kernel {

namespace {

// Functions of one operand that are well behaved for moderate arguments: those without a case of
// their own in function().
const std::vector<Op>& functions_of_any() {
  static const std::vector<Op> kAll = [] {
    const std::set<Op> others = {Op::exp,   Op::expm1, Op::sinh,  Op::cosh,  Op::log,
                                 Op::rsqrt, Op::log1p, Op::sin,   Op::cos,   Op::tan,
                                 Op::asin,  Op::acos,  Op::atanh, Op::acosh, Op::exp_fast};
    std::vector<Op> result;
    for (Op op : {
#define HEDDLE_KERNEL_OP(name, ...) Op::name,
#include "kernel/ops.def"
         })
      if (is_math(op) && op_operands(op) == 1 && !others.contains(op)) result.push_back(op);
    return result;
  }();
  return kAll;
}

}  // namespace

// splitmix64
uint64_t RandomBuilder::next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Type RandomBuilder::arithmetic_type() {
  std::vector<Type> types = {Type::f32, Type::f32, Type::f32, Type::s32, Type::s32,
                             Type::s64, Type::u32, Type::u64, Type::pred};
  if (options_.f64) types.push_back(Type::f64);
  if (options_.narrow_integers)
    types.insert(types.end(), {Type::s8, Type::s16, Type::u8, Type::u16});
  return pick(types);
}

Type RandomBuilder::any_type() {
  if (!options_.storage_types.empty() && chance(15)) return pick(options_.storage_types);
  return arithmetic_type();
}

ExprId RandomBuilder::extent_expr(Extent extent) {
  return extent.stored >= 0 ? k_.constant(extent.stored) : k_.dim(-1 - extent.stored);
}

ExprId RandomBuilder::literal(Type type) {
  if (tensor::is_float(type)) {
    constexpr double kNice[] = {0, 0.5, 1, -1, 2, -1.25, 3, 0.001, -100};
    double value = chance(60) ? kNice[below(9)] : (static_cast<double>(below(4000)) - 2000) / 256;
    return k_.constant(type, value);
  }
  int64_t bits = chance(70) ? between(-9, 20) : static_cast<int64_t>(next());
  return k_.add({Op::constant, type, {}, bits});
}

// -0 becomes +0, so that min and max have one answer.
ExprId RandomBuilder::plus_zero(ExprId x) {
  return k_.binary(Op::add, x, k_.constant(k_.expr(x).type, 0));
}

std::vector<RandomBuilder::Source*> RandomBuilder::readable(Type type, const Scope& scope) {
  std::vector<Source*> result;
  for (std::deque<Source>* list : {&globals_, &locals_}) {
    for (Source& source : *list) {
      const Buffer& buffer = k_.buffer(source.id);
      bool lanes_fit = buffer.lanes == 0 || buffer.lanes == scope.lanes;
      if (source.readable && !source.rough && buffer.type == type && lanes_fit)
        result.push_back(&source);
    }
  }
  return result;
}

ExprId RandomBuilder::register_index(int64_t extent, const Scope& scope) {
  std::vector<ExprId> choices = {k_.constant(below(extent))};
  for (const Variable& var : scope.vars) {
    if (!var.is_unrolled || var.high >= extent) continue;
    choices.push_back(k_.ref(var.id));
    choices.push_back(k_.binary(Op::sub, k_.constant(extent - 1), k_.ref(var.id)));
  }
  return pick(choices);
}

// An s64 of any value. Indices nested three deep are constants.
ExprId RandomBuilder::any_index(const Scope& scope, int depth) {
  if (index_depth_ > 1) return k_.constant(below(60));
  ++index_depth_;
  ExprId result = integer_expr(Type::s64, scope, depth);
  --index_depth_;
  return result;
}
// Inside [0, extent) in every lane.
ExprId RandomBuilder::index(Extent extent, const Scope& scope, bool last) {
  std::vector<const Variable*> fitting;
  for (const Variable& var : scope.vars) {
    if (var.low >= 0 && var.low <= var.high && var.high < extent.number) fitting.push_back(&var);
  }
  ExprId one = k_.constant(1), size = extent_expr(extent);
  if (!fitting.empty() && chance(75)) {
    const Variable& var = last && chance(70) ? *fitting.back() : *pick(fitting);
    ExprId ref = k_.ref(var.id);
    if (chance(70)) return ref;
    if (chance(50)) return k_.binary(Op::sub, k_.binary(Op::sub, size, ref), one);
    return k_.binary(Op::add, ref, k_.constant(below(extent.number - var.high)));
  }
  if (chance(40)) return k_.constant(below(extent.number));
  ExprId any = any_index(scope, 1);
  if (chance(60)) return k_.binary(Op::floor_mod, any, size);
  ExprId low = k_.binary(Op::max, any, k_.constant(0));
  return k_.binary(Op::min, low, k_.binary(Op::sub, size, one));
}

ExprId RandomBuilder::load(Source& source, const Scope& scope) {
  const Buffer& buffer = k_.buffer(source.id);
  std::vector<ExprId> indices;
  if (source.own) indices = place_;
  bool in_registers = buffer.space == Space::reg;
  for (size_t axis = indices.size(); axis < source.extents.size(); ++axis) {
    bool last = axis + 1 == source.extents.size();
    indices.push_back(in_registers ? register_index(source.extents[axis].number, scope)
                                   : index(source.extents[axis], scope, last));
  }
  if (!chance(20)) return k_.load(source.id, indices);
  if (in_registers) {
    ExprId mask = pred_expr(scope, 1);
    return k_.load_if(source.id, indices, mask, literal(buffer.type));
  }
  // An index that may leave the extent, and the guard that keeps it in.
  ExprId at = k_.binary(Op::add, indices.back(), k_.constant(between(-3, 3)));
  if (chance(30)) at = any_index(scope, 1);
  indices.back() = at;
  ExprId low = k_.compare(Op::ge, at, k_.constant(0));
  ExprId high = k_.compare(Op::lt, at, extent_expr(source.extents.back()));
  return k_.load_if(source.id, indices, k_.binary(Op::and_, low, high), literal(buffer.type));
}

ExprId RandomBuilder::leaf(Type type, const Scope& scope) {
  std::vector<ExprId> vars;
  for (const Variable& var : scope.vars) {
    if (k_.var(var.id).type == type) vars.push_back(k_.ref(var.id));
  }
  std::vector<Source*> sources = readable(type, scope);
  if (!sources.empty() && chance(75)) return load(*pick(sources), scope);
  if (!vars.empty() && chance(80)) return pick(vars);
  bool has_inputs = type == Type::f32 || type == Type::s32;
  if (sources.empty() && !has_inputs && !is_storage_type(type) && chance(70)) {
    return k_.convert(leaf(chance(50) ? Type::f32 : Type::s32, scope), type);
  }
  return literal(type);
}

ExprId RandomBuilder::across_lanes(Type type, const Scope& scope, int depth) {
  ExprId x = expr(type, scope, depth - 1);
  int64_t lane = below(scope.lanes);
  return k_.add({chance(50) ? Op::lane : Op::shuffle_xor, type, {x}, lane});
}

ExprId RandomBuilder::expr(Type type, const Scope& scope, int depth) {
  if (is_storage_type(type)) return storage_expr(type, scope, depth);
  if (depth <= 0 || chance(10)) return leaf(type, scope);
  bool all_lanes = scope.lanes > 0 && scope.all_active && !scope.below_lane;
  if (all_lanes && chance(10)) return across_lanes(type, scope, depth);
  if (chance(8)) {
    ExprId condition = pred_expr(scope, depth - 1), a = expr(type, scope, depth - 1);
    return k_.select(condition, a, expr(type, scope, depth - 1));
  }
  if (type == Type::pred) return pred_expr(scope, depth);
  if (chance(10)) return converted(type, scope, depth);
  if (chance(5)) return bits_of(type, scope, depth);
  return tensor::is_float(type) ? float_expr(type, scope, depth) : integer_expr(type, scope, depth);
}

ExprId RandomBuilder::storage_expr(Type type, const Scope& scope, int depth) {
  if (depth <= 0 || chance(20)) return leaf(type, scope);
  Type from = chance(80) ? Type::f32 : arithmetic_type();
  return k_.convert(expr(from, scope, depth - 1), type);
}

ExprId RandomBuilder::converted(Type type, const Scope& scope, int depth) {
  Type from = any_type();
  if (is_storage_type(from)) return k_.convert(leaf(from, scope), type);
  return k_.convert(expr(from, scope, depth - 1), type);
}

// A bitcast, but not of NaNs, whose bits are not defined.
ExprId RandomBuilder::bits_of(Type type, const Scope& scope, int depth) {
  switch (type) {
    case Type::f32:
      return k_.add(
          {Op::bitcast, type, {expr(chance(50) ? Type::s32 : Type::u32, scope, depth - 1)}});
    case Type::s32:
    case Type::u32: {
      ExprId x = expr(Type::f32, scope, depth - 1);
      ExprId finite = k_.add({Op::is_finite, Type::pred, {x}});
      return k_.add({Op::bitcast, type, {k_.select(finite, x, k_.constant(Type::f32, 1))}});
    }
    default:
      return leaf(type, scope);
  }
}

ExprId RandomBuilder::integer_expr(Type type, const Scope& scope, int depth) {
  if (depth <= 0) return leaf(type, scope);
  ExprId a = expr(type, scope, depth - 1);
  if (chance(20)) {
    return k_.unary(pick_op({Op::neg, Op::abs, Op::sign, Op::not_, Op::popcnt, Op::clz}), a);
  }
  ExprId b = expr(type, scope, depth - 1);
  if (chance(12)) {  // floors require a positive divisor
    int64_t most = type == Type::s8 ? 100 : 200;
    ExprId divisor = k_.binary(Op::max, b, k_.add({Op::constant, type, {}, 1}));
    if (chance(70)) divisor = k_.add({Op::constant, type, {}, between(1, most)});
    return k_.binary(pick_op({Op::floor_div, Op::floor_mod}), a, divisor);
  }
  if (chance(20)) {
    ExprId amount = chance(80) ? k_.add({Op::constant, type, {}, between(0, 9)}) : b;
    return k_.binary(pick_op({Op::shl, Op::shr_arithmetic, Op::shr_logical}), a, amount);
  }
  return k_.binary(pick_op({Op::add, Op::add, Op::sub, Op::mul, Op::div, Op::rem, Op::min, Op::max,
                            Op::and_, Op::or_, Op::xor_, Op::mulhi}),
                   a, b);
}

ExprId RandomBuilder::float_expr(Type type, const Scope& scope, int depth) {
  ExprId a = expr(type, scope, depth - 1);
  if (chance(20)) {
    return k_.unary(pick_op({Op::neg, Op::abs, Op::sign, Op::floor, Op::ceil, Op::round_even,
                             Op::round_away, Op::sqrt}),
                    a);
  }
  ExprId b = expr(type, scope, depth - 1);
  if (chance(20)) return k_.fma(a, b, expr(type, scope, depth - 1));
  if (chance(15)) {
    a = plus_zero(a);
    b = plus_zero(b);
    return k_.binary(pick_op({Op::min, Op::max}), a, b);
  }
  if (options_.float_rem && chance(5)) return k_.binary(Op::rem, a, b);
  return k_.binary(pick_op({Op::add, Op::sub, Op::mul, Op::mul, Op::add, Op::div}), a, b);
}

ExprId RandomBuilder::pred_expr(const Scope& scope, int depth) {
  if (depth <= 0) return leaf(Type::pred, scope);
  if (chance(25)) {
    ExprId a = expr(Type::pred, scope, depth - 1), b = expr(Type::pred, scope, depth - 1);
    return k_.binary(pick_op({Op::and_, Op::or_, Op::xor_}), a, b);
  }
  if (chance(10)) return k_.unary(Op::not_, expr(Type::pred, scope, depth - 1));
  Type type = arithmetic_type();
  ExprId a = expr(type, scope, depth - 1);
  if (tensor::is_float(type) && chance(15)) return k_.add({Op::is_finite, Type::pred, {a}});
  ExprId b = expr(type, scope, depth - 1);
  return k_.compare(pick_op({Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge}), a, b);
}

// All lanes of a register folded together by a tree of shuffles; for use outside vector loops.
ExprId RandomBuilder::lane_sum(Source& source, const Scope& scope) {
  Type type = k_.buffer(source.id).type;
  Scope inner = scope;
  inner.lanes = k_.buffer(source.id).lanes;
  inner.below_lane = true;
  std::vector<ExprId> indices;
  for (Extent extent : source.extents) indices.push_back(register_index(extent.number, scope));
  ExprId x = k_.load(source.id, indices);
  bool number = type != Type::pred;
  if (number && chance(50)) {
    ExprId product = k_.binary(Op::mul, x, expr(type, inner, 2));
    if (k_.expr(product).op != Op::constant) x = product;  // a product with zero has no lanes
  }
  Op fold = !number ? pick_op({Op::and_, Op::or_, Op::xor_}) : pick_op({Op::add, Op::max, Op::min});
  bool orders = tensor::is_float(type) && fold != Op::add;
  if (orders) x = plus_zero(x);
  for (int64_t step = inner.lanes / 2; step > 0; step /= 2) {
    x = k_.binary(fold, x, k_.add({Op::shuffle_xor, type, {x}, step}));
  }
  return k_.add({Op::lane, type, {x}, below(inner.lanes)});
}

// A function with a bound in ulp, of an argument where it is well behaved.
ExprId RandomBuilder::function(const Scope& scope) {
  ExprId x = expr(Type::f32, scope, 2);
  auto number = [&](double value) { return k_.constant(Type::f32, value); };
  ExprId finite = k_.add({Op::is_finite, Type::pred, {x}});
  x = k_.select(finite, plus_zero(x), number(0.5));
  auto within = [&](double low, double high) {
    ExprId least = k_.binary(Op::max, x, number(low));
    return k_.binary(Op::min, least, number(high));
  };
  Op op = Op::exp;
  ExprId argument;
  auto is = [&](std::initializer_list<Op> ops, double low, double high) {
    op = pick_op(ops);
    argument = within(low, high);
  };
  switch (below(9)) {
    case 0:
      is({Op::exp, Op::expm1, Op::sinh, Op::cosh}, -80, 80);
      break;
    case 1:
      is({Op::log, Op::rsqrt}, 1e-30, 1e30);
      break;
    case 2:
      is({Op::log1p}, -0.99, 1e30);
      break;
    case 3:
      is({Op::sin, Op::cos, Op::tan}, -1.5, 1.5);
      break;
    case 4:
      is({Op::asin, Op::acos, Op::atanh}, -0.99, 0.99);
      break;
    case 5:
      is({Op::acosh}, 1, 1e6);
      break;
    case 6:
      is({Op::exp_fast}, -80, 0);
      break;
    case 7:
      is({Op::pow, Op::atan2}, 0.1, 10);
      return k_.binary(op, argument, within(0.5, 8));
    default:
      op = pick(functions_of_any());
      argument = within(-20, 20);
  }
  return k_.unary(op, argument);
}

}  // namespace heddle::kernel
