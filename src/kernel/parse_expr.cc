#include <charconv>
#include <cmath>
#include <limits>

#include "kernel/mma.h"
#include "kernel/parser.h"
#include "kernel/scalar.h"

namespace heddle::kernel {
namespace {

constexpr int kMaxDepth = 200;

struct OpToken {
  std::string_view text;
  Op op;
};
constexpr OpToken kComparisons[] = {{"==", Op::eq}, {"!=", Op::ne}, {"<", Op::lt},
                                    {"<=", Op::le}, {">", Op::gt},  {">=", Op::ge}};
constexpr OpToken kMultiplicatives[] = {{"*", Op::mul}, {"/", Op::div}, {"%", Op::rem}};

// Operators that are written as calls.
const std::unordered_map<std::string_view, Op>& calls() {
  static const auto* const kCalls = [] {
    auto* map = new std::unordered_map<std::string_view, Op>;
#define HEDDLE_KERNEL_OP(name, ...) map->emplace(op_text(Op::name), Op::name);
#include "kernel/ops.def"
    for (Op op : {Op::constant, Op::var, Op::dim, Op::load}) map->erase(op_text(op));
    return map;
  }();
  return *kCalls;
}

// The bits of a number of `type`, or nullopt if it is not one.
std::optional<uint64_t> parse_bits(Type type, std::string_view digits, bool negative) {
  const char *begin = digits.data(), *end = begin + digits.size();
  bool hex = digits.substr(0, 2) == "0x";
  int width = type == Type::pred ? 1 : tensor::type_bits(type);
  uint64_t value = 0;
  if (hex || !tensor::is_float(type)) {
    auto [stop, error] = std::from_chars(begin + (hex ? 2 : 0), end, value, hex ? 16 : 10);
    if (error != std::errc() || stop != end) return std::nullopt;
    if (hex) {
      if (negative || (width < 64 && value >> width != 0)) return std::nullopt;
      return canonical_bits(type, value);
    }
    uint64_t largest = ~uint64_t{0} >> (64 - width);
    if (tensor::is_signed_integer(type)) largest = (largest >> 1) + negative;
    if (value > largest || (negative && tensor::is_unsigned_integer(type) && value != 0)) {
      return std::nullopt;
    }
    return negative ? 0 - value : value;
  }
  double real = 0;
  float single = 0;
  std::from_chars_result result{};
  if (digits == "inf" || digits == "nan") {
    real = digits == "inf" ? std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
  } else if (type == Type::f32) {  // straight to f32: not rounded twice
    result = std::from_chars(begin, end, single);
    real = single;
  } else {
    result = std::from_chars(begin, end, real);
  }
  if (result.ec != std::errc() || (result.ptr != nullptr && result.ptr != end)) return std::nullopt;
  return tensor::float_to_bits(type, negative ? -real : real);
}

}  // namespace

Result<ExprId> Parser::infix(Op op, ExprId left, ExprId right, const Token& where) {
  Type a = kernel_.expr(left).type, b = kernel_.expr(right).type;
  if (a != b) {
    return fail_at(where, fmt::format("operands of {} are {} and {}; they must agree", op_text(op),
                                      tensor::type_name(a), tensor::type_name(b)));
  }
  return kernel_.add({op, op_result(op, a), {left, right}});
}

Result<ExprId> Parser::expression() {
  if (++depth_ > kMaxDepth) return fail("expressions nest more than {} deep", kMaxDepth);
  HEDDLE_ASSIGN_OR_RETURN(ExprId left, additive());
  for (const OpToken& row : kComparisons) {
    const Token& where = peek();
    if (!take(row.text)) continue;
    HEDDLE_ASSIGN_OR_RETURN(ExprId right, additive());
    HEDDLE_ASSIGN_OR_RETURN(left, infix(row.op, left, right, where));
    break;
  }
  --depth_;
  return left;
}

Result<ExprId> Parser::additive() {
  HEDDLE_ASSIGN_OR_RETURN(ExprId left, multiplicative());
  while (at("+") || at("-")) {
    const Token& where = peek();
    Op op = take("+") ? Op::add : Op::sub;
    if (op == Op::sub) ++at_;
    HEDDLE_ASSIGN_OR_RETURN(ExprId right, multiplicative());
    HEDDLE_ASSIGN_OR_RETURN(left, infix(op, left, right, where));
  }
  return left;
}

Result<ExprId> Parser::multiplicative() {
  HEDDLE_ASSIGN_OR_RETURN(ExprId left, primary());
  for (bool more = true; more;) {
    more = false;
    for (const OpToken& row : kMultiplicatives) {
      const Token& where = peek();
      if (!take(row.text)) continue;
      HEDDLE_ASSIGN_OR_RETURN(ExprId right, primary());
      HEDDLE_ASSIGN_OR_RETURN(left, infix(row.op, left, right, where));
      more = true;
      break;
    }
  }
  return left;
}

Result<ExprId> Parser::primary() {
  const Token& token = peek();
  if (take("(")) {
    HEDDLE_ASSIGN_OR_RETURN(ExprId inner, expression());
    HEDDLE_RETURN_IF_ERROR(expect(")"));
    return inner;
  }
  if (take("$")) {
    HEDDLE_ASSIGN_OR_RETURN(int64_t number, integer("a number", 0, 1 << 30));
    auto it = abbreviations_.find(number);
    if (it == abbreviations_.end())
      return fail_at(token, fmt::format("${} is not defined", number));
    return it->second;
  }
  if (token.kind == TokenKind::identifier && !peek(1).is(":")) return named();
  return literal();
}

Result<ExprId> Parser::literal() {
  const Token where = peek();
  bool negative = take("-");
  const Token number = peek();
  bool special = number.is("inf") || number.is("nan");
  if (number.kind != TokenKind::integer && number.kind != TokenKind::real && !special) {
    return fail("expected an expression, got {}", shown(number));
  }
  ++at_;
  Type wanted = Type::s64;
  if (take(":")) {
    HEDDLE_ASSIGN_OR_RETURN(wanted, type());
  }
  auto bits = is_arithmetic_type(wanted) || is_storage_type(wanted)
                  ? parse_bits(wanted, number.spelling, negative)
                  : std::nullopt;
  if (!bits) {
    return fail_at(where, fmt::format("'{}{}' is not a value of {}", negative ? "-" : "",
                                      number.spelling, tensor::type_name(wanted)));
  }
  return kernel_.add({Op::constant, wanted, {}, static_cast<int64_t>(*bits)});
}

Result<ExprId> Parser::named() {
  std::string name(peek().spelling);
  if (peek(1).is("[")) {
    HEDDLE_ASSIGN_OR_RETURN(Access from, access());
    return kernel_.load(from.buffer, std::move(from.indices));
  }
  if (peek(1).is("(")) return name == "load_if" ? load_if() : call();
  if (name == "true" || name == "false") {
    ++at_;
    return kernel_.add({Op::constant, Type::pred, {}, name == "true"});
  }
  if (auto it = visible_.find(name); it != visible_.end()) {
    ++at_;
    return kernel_.ref(it->second);
  }
  if (auto it = dims_.find(name); it != dims_.end()) {
    ++at_;
    return kernel_.dim(it->second);
  }
  return fail("'{}' is not the name of a variable in scope or of a dimension", name);
}

Result<ExprId> Parser::load_if() {
  at_ += 2;
  HEDDLE_ASSIGN_OR_RETURN(Access from, access());
  HEDDLE_RETURN_IF_ERROR(expect(","));
  HEDDLE_ASSIGN_OR_RETURN(ExprId mask, expression());
  HEDDLE_RETURN_IF_ERROR(expect(","));
  HEDDLE_ASSIGN_OR_RETURN(ExprId other, expression());
  HEDDLE_RETURN_IF_ERROR(expect(")"));
  return kernel_.load_if(from.buffer, std::move(from.indices), mask, other);
}

Result<ExprId> Parser::call() {
  const Token where = peek();
  auto it = calls().find(where.spelling);
  if (it == calls().end()) return fail("unknown function {}", shown(where));
  at_ += 2;
  Expr expr{it->second, Type::s64, {}};
  for (int i = 0; i < op_operands(expr.op); ++i) {
    if (i > 0) HEDDLE_RETURN_IF_ERROR(expect(","));
    HEDDLE_ASSIGN_OR_RETURN(ExprId operand, expression());
    expr.operands.push_back(operand);
  }
  Type first = kernel_.expr(expr.operands[expr.op == Op::select ? 1 : 0]).type;
  expr.type = op_result(expr.op, first);
  if (expr.op == Op::convert || expr.op == Op::bitcast) {
    HEDDLE_RETURN_IF_ERROR(expect(","));
    HEDDLE_ASSIGN_OR_RETURN(expr.type, type());
  }
  if (expr.op == Op::lane || expr.op == Op::shuffle_xor) {
    HEDDLE_RETURN_IF_ERROR(expect(","));
    HEDDLE_ASSIGN_OR_RETURN(expr.imm, integer("a lane", 0, 1 << 20));
  }
  if (expr.op == Op::dot) {
    HEDDLE_RETURN_IF_ERROR(expect(","));
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, word("the name of a matrix instruction"));
    const MmaDescriptor* mma = find_mma(name);
    if (mma == nullptr || !mma->is_dot()) return fail("'{}' is no instruction of one lane", name);
    expr.imm = mma_row(*mma);
    expr.type = mma->d;
  }
  HEDDLE_RETURN_IF_ERROR(expect(")"));
  return kernel_.add(std::move(expr));
}

}  // namespace heddle::kernel
