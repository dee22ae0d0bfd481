// Expressions of a statement: every node once, loads at its beginning.
#include <algorithm>
#include <bit>
#include <cmath>

#include "emit/cuda/cuda_emitter.h"

namespace heddle::emit::cuda {

namespace {

constexpr size_t kLongText = 90;  // longer ones get a name

bool is_leaf(Op op) { return op == Op::constant || op == Op::var || op == Op::dim; }

// Operators that have a form in 32 bits for indices that fit.
bool has_narrow_form(Op op) {
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::min:
    case Op::max:
    case Op::floor_div:
    case Op::floor_mod:
    case Op::select:
    case Op::convert:
    case Op::lane:
    case Op::shuffle_xor:
      return true;
    default:
      return false;
  }
}

// Sums and products associate to the left: a left operand needs no parentheses, nor does a product
// in a sum. The order of evaluation does not change.
bool reads_bare(Op parent, size_t place, Op operand) {
  const bool sum = parent == Op::add || parent == Op::sub;
  if (sum && operand == Op::mul) return true;
  if (place != 0) return false;
  if (sum) return operand == Op::add || operand == Op::sub;
  return parent == Op::mul && operand == Op::mul;
}

std::string float_text(double value, bool wide) {
  if (std::isnan(value))
    return wide ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fc00000)";
  std::string text;
  if (std::isinf(value)) {
    text = wide ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)";
  } else {
    text = wide ? fmt::format("{}", std::fabs(value))
                : fmt::format("{}", std::fabs(static_cast<float>(value)));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (!wide) text += "f";
  }
  return std::signbit(value) ? "(-" + text + ")" : text;
}

}  // namespace

bool CudaEmitter::is_narrow(ExprId id) const {
  return kernel_.expr(id).type == Type::s64 && ranges_.of(id).narrow();
}

std::string CudaEmitter::type_of(ExprId id) const {
  return is_narrow(id) ? "int" : c_type(kernel_.expr(id).type);
}

std::string CudaEmitter::literal(const Expr& expr, bool narrow) const {
  const auto bits = static_cast<uint64_t>(expr.imm);
  switch (expr.type) {
    case Type::pred:
      return expr.imm ? "true" : "false";
    case Type::f32:
      return float_text(std::bit_cast<float>(static_cast<uint32_t>(bits)), false);
    case Type::f64:
      return float_text(std::bit_cast<double>(bits), true);
    case Type::f16:
    case Type::bf16:
      return fmt::format("(unsigned short){}", bits);
    case Type::u64:
      return fmt::format("{}ull", bits);
    case Type::u32:
      return fmt::format("{}u", bits);
    case Type::s64:
      if (narrow) break;
      if (expr.imm == INT64_MIN) return "(-9223372036854775807ll - 1)";
      return expr.imm < 0 ? fmt::format("({}ll)", expr.imm) : fmt::format("{}ll", expr.imm);
    default:
      if (expr.type != Type::s32) return fmt::format("({})({})", c_type(expr.type), expr.imm);
  }
  if (expr.imm == INT32_MIN) return "(-2147483647 - 1)";
  return expr.imm < 0 ? fmt::format("({})", expr.imm) : fmt::format("{}", expr.imm);
}

void CudaEmitter::prepare(const std::vector<ExprId>& roots) {
  ready_.clear();
  const std::vector<ExprId> nodes = kernel::reachable(kernel_, roots);
  std::unordered_map<uint32_t, int> uses;
  for (ExprId id : roots) ++uses[id.value];
  for (size_t n = nodes.size(); n-- > 0;)  // readers first
    if (uses.contains(nodes[n].value) && !wide_.contains(nodes[n].value))
      for (ExprId operand : kernel_.expr(nodes[n]).operands) ++uses[operand.value];
  for (ExprId id : nodes) {
    const Expr& expr = kernel_.expr(id);
    if (is_leaf(expr.op) || !uses.contains(id.value)) continue;
    if (const auto wide = wide_.find(id.value); wide != wide_.end()) {
      ready_.emplace(id.value, wide->second);
      continue;
    }
    // Lanes must not diverge before a shuffle; memory is read before anything is stored.
    const bool apart = expr.op == Op::shuffle_xor || expr.op == Op::lane ||
                       (expr.op == Op::load && !is_register(kernel_.buffer(expr.buffer)));
    if (c_type(expr.type).empty())
      return refuse(fmt::format("the type {}", tensor::type_name(expr.type)));
    std::string text = make(id);
    if (!apart && uses[id.value] < 2 && text.size() < kLongText) {
      ready_.emplace(id.value, std::move(text));
      continue;
    }
    const std::string temporary = fmt::format("e{}", temporaries_++);
    line(fmt::format("const {} {} = {};", type_of(id), temporary, bare(text)));
    ready_.emplace(id.value, temporary);
  }
}

std::string CudaEmitter::value(ExprId id) {
  const Expr& expr = kernel_.expr(id);
  switch (expr.op) {
    case Op::constant:
      return literal(expr, is_narrow(id));
    case Op::var:
      return name(expr.var);
    case Op::dim:
      return "dim_" + kernel_.dims[static_cast<size_t>(expr.imm)];
    default:
      break;
  }
  const auto found = ready_.find(id.value);
  return found != ready_.end() ? found->second : make(id);
}

std::string CudaEmitter::make(ExprId id) {
  const Expr& expr = kernel_.expr(id);
  if (expr.op == Op::load) return load_text(expr);
  const auto is_index = [&](ExprId x) { return kernel_.expr(x).type == Type::s64; };
  bool some = false, all = true;  // of the index operands fit
  for (ExprId operand : expr.operands) {
    if (!is_index(operand)) continue;
    some |= is_narrow(operand);
    all &= is_narrow(operand);
  }
  const bool narrow = is_narrow(id) && has_narrow_form(expr.op) && all;
  // Comparisons of two that fit stay in 32 bits.
  const bool compares = expr.type == Type::pred && all;
  std::vector<std::string> operands;
  for (ExprId operand : expr.operands) {
    std::string text = value(operand);
    if (!narrow && !compares && some && is_index(operand) && is_narrow(operand) &&
        expr.op != Op::convert)
      text = "(long long)" + text;
    const Op op = kernel_.expr(operand).op;
    if (reads_bare(expr.op, operands.size(), op)) text = bare(std::move(text));
    operands.push_back(std::move(text));
  }
  std::string text = apply(expr, operands, narrow);
  return is_narrow(id) && !narrow ? "(int)" + text : text;
}

std::string CudaEmitter::load_text(const Expr& expr) {
  const kernel::Buffer& buffer = kernel_.buffer(expr.buffer);
  std::vector<ExprId> indices = expr.operands;
  if (expr.guarded) indices.resize(indices.size() - 2);
  std::string text = element(expr.buffer, indices);
  if (buffer.type == Type::pred && buffer.space != kernel::Space::reg) text = "(" + text + " != 0)";
  if (!expr.guarded) return text;
  return fmt::format("({} ? {} : {})", value(expr.operands[expr.operands.size() - 2]), text,
                     value(expr.operands.back()));
}

// "x[i]", row-major.
std::string CudaEmitter::element(BufferId id, const std::vector<ExprId>& indices) {
  const kernel::Buffer& buffer = kernel_.buffer(id);
  const std::string& name = buffer_names_[id.index()];
  if (indices.empty()) return name + "[0]";
  std::string text;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const std::string index = value(indices[axis]);
    if (axis == 0) {
      text = index;
      continue;
    }
    const int64_t extent = buffer.extents[axis];
    const std::string by =
        extent < 0 ? "dim_" + kernel_.dims[static_cast<size_t>(-1 - extent)]
                   : fmt::format("{}{}", extent, buffer.space == kernel::Space::global ? "ll" : "");
    text = fmt::format("({} * {} + {})", text, by, index);
  }
  return fmt::format("{}[{}]", name, bare(text));
}

std::string bare(std::string text) {
  if (text.empty() || text.front() != '(' || text.back() != ')') return text;
  int depth = 0;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (depth == 0) return text;  // the first one closes before the end
  }
  return text.substr(1, text.size() - 2);
}

}  // namespace heddle::emit::cuda
