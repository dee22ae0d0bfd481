// Integer and logical operators. Besides the value itself the emitter tracks its bounds, a number
// it is a multiple of, and whether it is linear over the lanes: index arithmetic of flattened and
// split loops then folds to uniform values plus a lane number, and loads stay contiguous.
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "emit/llvm/kernel_emitter.h"

namespace heddle::emit {

using llvm::Value;

namespace {

// The constant that a uniform value is known to be, or nullopt.
std::optional<int64_t> known(const Val& x) {
  if (!x.uniform()) return std::nullopt;
  auto* number = llvm::dyn_cast<llvm::ConstantInt>(x.v);
  if (!number) return std::nullopt;
  return number->getSExtValue();
}

int64_t scaled(int64_t multiple, int64_t factor) {
  __extension__ __int128 product = static_cast<__int128>(multiple) * factor;
  if (product < 0) product = -product;
  return product > (int64_t{1} << 62) ? 1 : static_cast<int64_t>(product);
}

bool is_comparison(kernel::Op op) { return op >= kernel::Op::eq && op <= kernel::Op::ge; }

// Operators whose result in 32 bits equals the one in 64 where operands and result fit.
bool narrows(kernel::Op op) {
  using kernel::Op;
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::floor_div:
    case Op::floor_mod:
    case Op::min:
    case Op::max:
    case Op::and_:
    case Op::or_:
    case Op::xor_:
    case Op::neg:
    case Op::abs:
    case Op::sign:
    case Op::not_:
      return true;
    default:
      return is_comparison(op);
  }
}

}  // namespace

// (a op b) as one linear value, where both are uniform or linear.
bool KernelEmitter::linear_result(const Expr& expr, const Val& a, const Val& b, Val& result) {
  if (a.varying || b.varying || expr.type != Type::s64) return false;
  result = join({&a, &b});
  result.bounds = result_bounds(expr.op, expr.type, a, b);
  int64_t factor = 0;
  __extension__ __int128 stride = 0;
  switch (expr.op) {
    case Op::add:
      stride = static_cast<__int128>(a.stride) + b.stride;
      result.multiple = std::gcd(a.multiple, b.multiple);
      break;
    case Op::sub:
      stride = static_cast<__int128>(a.stride) - b.stride;
      result.multiple = std::gcd(a.multiple, b.multiple);
      break;
    case Op::mul: {
      std::optional<int64_t> left = known(a), right = known(b);
      if (!left && !right) {
        if (!a.uniform() || !b.uniform()) return false;
        result.multiple = scaled(a.multiple, b.multiple);
        break;
      }
      factor = right ? *right : *left;
      const Val& other = right ? a : b;
      stride = static_cast<__int128>(other.stride) * factor;
      result.multiple = scaled(other.multiple, factor);
      break;
    }
    case Op::floor_div:
    case Op::floor_mod:
      return linear_division(expr.op, a, b, result);
    default:
      return false;
  }
  if (stride < -(int64_t{1} << 40) || stride > int64_t{1} << 40) return false;
  result.stride = static_cast<int64_t>(stride);
  At at(*this, result.level);
  result.v = emit_binary(math_, expr.op, Type::s64, a.v, b.v);
  return true;
}

// Division of a linear value by a positive number: where no lane crosses a multiple of the divisor
// the quotient is uniform and the remainder linear; where the stride is a multiple of the divisor
// the quotient is linear and the remainder uniform.
bool KernelEmitter::linear_division(Op op, const Val& a, const Val& b, Val& result) {
  std::optional<int64_t> divisor = known(b);
  if (!divisor || *divisor <= 0) return false;
  int64_t d = *divisor;
  bool quotient = op == Op::floor_div;
  if (a.bounds.within({0, d - 1})) {  // nothing to do
    if (!quotient) {
      int level = result.level;
      result = a;
      result.level = level;
      return true;
    }
    result.v = b_.getInt64(0);
    result.multiple = 0;
    return true;
  }
  int64_t grain = std::gcd(a.multiple, d);  // a.multiple 0: a.v is 0, and the grain d
  bool crosses = a.stride < 0 || a.stride * (lanes_ - 1) >= grain;
  bool whole = a.stride % d == 0;
  if (a.stride != 0 && crosses && !whole) return !quotient && known_remainders(a, d, result);
  if (a.stride != 0)
    result.stride = whole ? (quotient ? a.stride / d : 0) : (quotient ? 0 : a.stride);
  if (quotient) {
    result.multiple = a.multiple % d == 0 ? a.multiple / d : 1;
  } else {
    result.multiple = grain == d ? 0 : grain;
  }
  At at(*this, result.level);
  Facts facts{a.bounds.low >= 0, true};
  result.v = emit_binary(math_, op, Type::s64, a.v, b.v, facts);
  return true;
}

// The remainders of a linear value, where that of lane 0 is known: constants, so that conditions on
// them are constant masks.
bool KernelEmitter::known_remainders(const Val& a, int64_t d, Val& result) {
  const std::optional<int64_t> rest = residue(a, d);
  if (!rest || d > INT32_MAX) return false;
  std::vector<llvm::Constant*> lanes;
  for (int64_t lane = 0; lane < lanes_; ++lane) {
    const int64_t remainder = floor_remainder(*rest + a.stride % d * lane, d);
    lanes.push_back(int_constant(b_.getInt32Ty(), static_cast<uint64_t>(remainder)));
  }
  result.v = llvm::ConstantVector::get(lanes);
  result.varying = true;
  return true;
}

bool KernelEmitter::known_comparison(Op op, const Val& a, const Val& b, bool& result) const {
  Bounds x = a.bounds, y = b.bounds;
  bool below = x.high < y.low, not_above = x.high <= y.low;
  bool above = x.low > y.high, not_below = x.low >= y.high;
  switch (op) {
    case Op::lt:
      result = below;
      return below || not_below;
    case Op::le:
      result = not_above;
      return not_above || above;
    case Op::gt:
      result = above;
      return above || not_above;
    case Op::ge:
      result = not_below;
      return not_below || below;
    case Op::eq:
      result = false;
      return below || above;
    case Op::ne:
      result = true;
      return below || above;
    default:
      return false;
  }
}

Bounds KernelEmitter::result_bounds(Op op, Type type, const Val& a, const Val& b) const {
  Bounds all = Bounds::of(type), x = a.bounds, y = b.bounds, result = all;
  if (type == Type::u64 || type == Type::pred) return all;
  switch (op) {
    case Op::add:
      result = x + y;
      break;
    case Op::sub:
      result = x - y;
      break;
    case Op::mul:
      result = x * y;
      break;
    case Op::min:
      result = {std::min(x.low, y.low), std::min(x.high, y.high)};
      break;
    case Op::max:
      result = {std::max(x.low, y.low), std::max(x.high, y.high)};
      break;
    case Op::floor_div:
      result = floor_div(x, y);
      break;
    case Op::floor_mod:
      result = floor_mod(x, y);
      break;
    case Op::div:
      if (x.low >= 0) result = floor_div(x, y);
      break;
    case Op::rem:
      if (x.low >= 0) result = floor_mod(x, y);
      break;
    case Op::and_:
      if (x.low >= 0 && y.low >= 0) result = {0, std::min(x.high, y.high)};
      break;
    case Op::neg:
      result = Bounds::exactly(0) - x;
      break;
    case Op::sign:
      result = {-1, 1};
      break;
    case Op::popcnt:
    case Op::clz:
      result = {0, 64};
      break;
    default:
      break;
  }
  return result.within(all) ? result : all;
}

Val KernelEmitter::integer_unary(const Expr& expr) {
  Val x = eval(expr.operands[0]);
  Val result = join({&x});
  result.bounds = result_bounds(expr.op, expr.type, x, x);
  At at(*this, result.level);
  if (expr.op == Op::neg && expr.type == Type::s64 && !x.varying) {
    result.stride = -x.stride;
    result.multiple = x.multiple;
    result.v = emit_unary(math_, expr.op, expr.type, x.v);
    return result;
  }
  result.varying = !x.uniform();
  bool narrow = result.varying && expr.type == Type::s64 && narrows(expr.op) &&
                x.bounds.fits_s32() && result.bounds.fits_s32();
  Value* v = operand(x, expr.type, result.varying, narrow);
  result.v = emit_unary(math_, expr.op, narrow ? Type::s32 : expr.type, v);
  return result;
}

Val KernelEmitter::integer(const Expr& expr) {
  if (expr.operands.size() == 1) return integer_unary(expr);
  Type type = kernel_.expr(expr.operands[0]).type;
  Val a = eval(expr.operands[0]), b = eval(expr.operands[1]);
  Val result;
  if (type == Type::s64 && !is_comparison(expr.op) && linear_result(expr, a, b, result)) {
    return result;
  }
  result = join({&a, &b});
  bool truth = false;
  if (is_comparison(expr.op) && type != Type::u64 && type != Type::pred &&
      known_comparison(expr.op, a, b, truth)) {
    result.v = b_.getInt1(truth);
    result.pinned = false;
    return result;
  }
  if ((expr.op == Op::min || expr.op == Op::max) && type != Type::u64 && type != Type::pred) {
    bool max = expr.op == Op::max;
    const Val* winner = nullptr;
    if (a.bounds.low >= b.bounds.high) winner = max ? &a : &b;
    if (b.bounds.low >= a.bounds.high) winner = max ? &b : &a;
    if (winner) {  // a clamp that does nothing keeps a linear index linear
      Val chosen = *winner;
      chosen.level = result.level;
      chosen.pinned = result.pinned;
      return chosen;
    }
  }
  result.varying = !a.uniform() || !b.uniform();
  result.bounds = is_comparison(expr.op) ? Bounds{0, 1} : result_bounds(expr.op, type, a, b);
  bool narrow = result.varying && type == Type::s64 && narrows(expr.op) && a.bounds.fits_s32() &&
                b.bounds.fits_s32() && (is_comparison(expr.op) || result.bounds.fits_s32());
  At at(*this, result.level);
  Value* x = operand(a, type, result.varying, narrow);
  Value* y = operand(b, type, result.varying, narrow);
  Facts facts{type != Type::u64 && a.bounds.low >= 0, type != Type::u64 && b.bounds.low > 0};
  result.v = emit_binary(math_, expr.op, narrow ? Type::s32 : type, x, y, facts);
  return result;
}

}  // namespace heddle::emit
