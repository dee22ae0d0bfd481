#include <algorithm>
#include <unordered_map>

#include "kernel/interp_clocks.h"
#include "kernel/mma.h"
#include "kernel/scalar.h"
#include "kernel/stmt_text.h"
#include "kernel/verifier.h"

namespace heddle::kernel {
namespace {

bool is_register(const Buffer& buffer) {
  return buffer.space == Space::reg || buffer.space == Space::fragment;
}

bool is_leaf(Op op) { return op == Op::constant || op == Op::var || op == Op::dim; }

}  // namespace

void Verifier::check_expressions(const Stmt& stmt, const Context& context) {
  check_nodes(expressions(stmt), context);
}

void Verifier::check_nodes(const std::vector<ExprId>& roots, const Context& context) {
  for (ExprId id : reachable(kernel_, roots)) {
    const Expr& expr = kernel_.expr(id);
    if (!complete(expr)) continue;
    check_types(expr);
    check_operand_lanes(expr);
    if (expr.op == Op::var && !visible_[expr.var.index()]) {
      fail(2, "variable '{}' is not in scope", kernel_.var(expr.var).name);
    }
    if (expr.op == Op::load) {
      check_access(expr.buffer, expr.operands, expr.operands.size() - (expr.guarded ? 2 : 0));
    }
  }
  // Which lanes a node may have depends on its position: below lane(), any outside of vector loops.
  std::unordered_map<uint64_t, bool> seen;
  std::vector<std::pair<ExprId, bool>> stack;
  auto push = [&](ExprId id, bool under_lane) {
    if (seen.emplace(uint64_t{id.value} * 2 + under_lane, true).second)
      stack.emplace_back(id, under_lane);
  };
  for (ExprId id : roots) push(id, false);
  while (!stack.empty()) {
    auto [id, under_lane] = stack.back();
    stack.pop_back();
    if (!check_node_lanes(id, context, under_lane)) continue;
    const Expr& expr = kernel_.expr(id);
    for (ExprId operand : expr.operands) push(operand, under_lane || expr.op == Op::lane);
  }
}

// Checks operand counts and the ids of leaves. A node that fails is not checked further.
bool Verifier::complete(const Expr& expr) {
  int operands = op_operands(expr.op);
  if (operands >= 0 && static_cast<int>(expr.operands.size()) != operands) {
    fail(12, "{} has {} operands", op_text(expr.op), expr.operands.size());
    return false;
  }
  if (expr.op == Op::var && expr.var.index() >= kernel_.vars.size()) {
    fail(12, "an expression names no variable");
    return false;
  }
  if (expr.op == Op::dim &&
      (expr.imm < 0 || expr.imm >= static_cast<int64_t>(kernel_.dims.size()))) {
    fail(12, "there is no dimension {}", expr.imm);
    return false;
  }
  if (expr.op == Op::dot) {
    const auto rows = static_cast<int64_t>(mma_table().size());
    const bool is_dot =
        expr.imm >= 0 && expr.imm < rows && mma_table()[static_cast<size_t>(expr.imm)].is_dot();
    if (!is_dot) fail(14, "instruction {} of a dot is not one of one lane", expr.imm);
    return is_dot;
  }
  if (expr.op != Op::load) return true;
  if (!known(expr.buffer)) return false;
  if (expr.guarded && expr.operands.size() < 2) {
    fail(12, "a guarded load without mask and other");
    return false;
  }
  return true;
}

void Verifier::check_types(const Expr& expr) {
  auto name = [](Type type) { return tensor::type_name(type); };
  switch (expr.op) {
    case Op::constant:
      if (!is_arithmetic_type(expr.type) && !is_storage_type(expr.type)) {
        fail(1, "a constant of {}", name(expr.type));
      }
      return;
    case Op::var:
      if (kernel_.var(expr.var).type != expr.type) {
        fail(1, "variable '{}' is {}, read as {}", kernel_.var(expr.var).name,
             name(kernel_.var(expr.var).type), name(expr.type));
      }
      return;
    case Op::dim:
      if (expr.type != Type::s64) fail(1, "a dimension is s64");
      return;
    case Op::load: {
      if (expr.type != kernel_.buffer(expr.buffer).type) fail(1, "a load of the wrong type");
      if (!expr.guarded) return;
      Type mask = type(expr.operands[expr.operands.size() - 2]), other = type(expr.operands.back());
      if (mask != Type::pred || other != expr.type) {
        fail(1, "load_if of {} with mask {} and other {}", name(expr.type), name(mask),
             name(other));
      }
      return;
    }
    case Op::convert:
      if (!can_convert(type(expr.operands[0]), expr.type)) {
        fail(1, "{} cannot be converted to {}", name(type(expr.operands[0])), name(expr.type));
      }
      return;
    case Op::bitcast: {
      Type from = type(expr.operands[0]);
      bool fits =
          can_convert(from, expr.type) && tensor::type_bits(from) == tensor::type_bits(expr.type);
      if (!fits) fail(1, "bitcast of {} to {}", name(from), name(expr.type));
      return;
    }
    default:
      break;
  }
  if (expr.op == Op::dot) {
    const MmaDescriptor& mma = mma_table()[static_cast<size_t>(expr.imm)];
    const Type a = type(expr.operands[0]), b = type(expr.operands[1]), c = type(expr.operands[2]);
    if (a != mma.word() || b != mma.word() || c != mma.d || expr.type != mma.d)
      fail(14, "dot {} of {}, {} and {}", mma.name, name(a), name(b), name(c));
    return;
  }
  size_t first = expr.op == Op::select ? 1 : 0;
  Type operand = type(expr.operands[first]);
  bool agree = first == 0 || type(expr.operands[0]) == Type::pred;
  for (size_t i = first; i < expr.operands.size(); ++i)
    agree = agree && type(expr.operands[i]) == operand;
  if (!agree) return fail(1, "the operands of {} do not agree", op_text(expr.op));
  if (!op_takes(expr.op, operand)) return fail(1, "{} of {}", op_text(expr.op), name(operand));
  if (expr.type != op_result(expr.op, operand)) {
    fail(1, "{} of {} gives {}, not {}", op_text(expr.op), name(operand),
         name(op_result(expr.op, operand)), name(expr.type));
  }
}

void Verifier::check_operand_lanes(const Expr& expr) {
  int lanes = expr.op == Op::load && expr.buffer.index() < kernel_.buffers.size()
                  ? kernel_.buffer(expr.buffer).lanes
                  : 0;
  for (ExprId operand : expr.operands) {
    int own = width(operand);
    if (own == 0) continue;
    if (lanes != 0 && own != lanes) {
      return fail(5, "{} of values of {} and {} lanes", op_text(expr.op), lanes, own);
    }
    lanes = own;
  }
}

bool Verifier::check_node_lanes(ExprId id, const Context& context, bool under_lane) {
  const Expr& expr = kernel_.expr(id);
  if (expr.op == Op::lane || expr.op == Op::shuffle_xor) {
    if (expr.operands.size() == 1) check_lane_op(expr, context, under_lane);
  }
  int lanes = width(id);
  if (lanes == 0 || lanes == context.lanes) return true;
  if (context.lanes != 0) {
    fail(5, "{} has {} lanes in a loop of {}", expr_text(kernel_, id), lanes, context.lanes);
  } else if (!under_lane) {
    fail(5, "{} has {} lanes outside a vector loop; only lane() reads them there",
         expr_text(kernel_, id), lanes);
  }
  return context.lanes == 0 && under_lane;
}

void Verifier::check_lane_op(const Expr& expr, const Context& context, bool under_lane) {
  int lanes = context.lanes != 0 ? context.lanes : width(expr.operands[0]);
  if (context.lanes == 0 && expr.op == Op::shuffle_xor && !under_lane)
    return;  // reported elsewhere
  if (lanes == 0) return fail(5, "{} of a value without lanes", op_text(expr.op));
  if (!context.all_active) {
    fail(5, "{} where some lanes may be inactive", op_text(expr.op));
  }
  if (threads_ > 1 && lanes > kSubgroupLanes && expr.op == Op::lane) {
    fail(15, "lane of a value of {} lanes, which several subgroups hold", lanes);
  }
  if (threads_ > 1 && expr.op == Op::shuffle_xor && expr.imm >= kSubgroupLanes) {
    fail(15, "shuffle_xor with {}, beyond the subgroup", expr.imm);
  }
  if (expr.imm < 0 || expr.imm >= lanes) {
    fail(5, "{} with {} of {} lanes", op_text(expr.op), expr.imm, lanes);
  }
  // With whole subgroups the shuffle stays inside each.
  const bool inside = lanes % kSubgroupLanes == 0 && expr.imm < kSubgroupLanes;
  if (expr.op == Op::shuffle_xor && (lanes & (lanes - 1)) != 0 && !inside) {
    fail(5, "shuffle_xor of {} lanes, not a power of two", lanes);
  }
}

// `want`: how many of the indices are indices (a guarded load has two more operands).
void Verifier::check_access(BufferId id, const std::vector<ExprId>& indices, size_t want) {
  const Buffer& buffer = kernel_.buffer(id);
  if (buffer.extents.size() != want) {
    return fail(3, "'{}' of rank {} has {} indices", buffer.name, buffer.extents.size(), want);
  }
  for (size_t axis = 0; axis < want; ++axis) {
    if (type(indices[axis]) != Type::s64) {
      fail(1, "index {} of '{}' is {}, not s64", axis, buffer.name,
           tensor::type_name(type(indices[axis])));
    } else if (is_register(buffer)) {
      check_register_index(buffer, axis, indices[axis]);
    }
  }
}

// Checks every value that the index takes after unrolling.
void Verifier::check_register_index(const Buffer& buffer, size_t axis, ExprId index) {
  std::vector<ExprId> nodes = reachable(kernel_, {index});
  std::vector<VarId> vars;
  for (ExprId id : nodes) {
    const Expr& expr = kernel_.expr(id);
    bool fixed = expr.op == Op::constant ||
                 (expr.op == Op::var && expr.var.index() < unrolled_.size() &&
                  unrolled_[expr.var.index()] >= 0) ||
                 (!is_leaf(expr.op) && op_takes(expr.op, expr.type) && op_operands(expr.op) > 0 &&
                  expr.type == Type::s64 && expr.op != Op::lane && expr.op != Op::shuffle_xor);
    bool typed = std::all_of(expr.operands.begin(), expr.operands.end(),
                             [&](ExprId operand) { return type(operand) == Type::s64; });
    if (!fixed || !typed) {
      return fail(4, "index {} of '{}' is not constant after unrolling", expr_text(kernel_, index),
                  buffer.name);
    }
    if (expr.op == Op::var) vars.push_back(expr.var);
  }
  int64_t copies = 1;
  for (VarId var : vars) copies = std::min<int64_t>(copies * unrolled_[var.index()], 1 << 20);
  if (copies > 4096) return;  // such loops do not nest: reported elsewhere
  std::unordered_map<uint32_t, uint64_t> values;
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (ExprId id : nodes) {
      const Expr& expr = kernel_.expr(id);
      uint64_t operands[3] = {};
      for (size_t i = 0; i < expr.operands.size(); ++i)
        operands[i] = values[expr.operands[i].value];
      uint64_t& value = values[id.value];
      if (expr.op == Op::constant) {
        value = static_cast<uint64_t>(expr.imm);
      } else if (expr.op == Op::var) {
        int64_t rest = copy;
        for (VarId var : vars) {
          int64_t extent = unrolled_[var.index()];
          if (var == expr.var) value = static_cast<uint64_t>(rest % extent);
          rest /= extent;
        }
      } else {
        value = evaluate(expr.op, Type::s64, operands[0], operands[1], operands[2]);
      }
    }
    auto at = static_cast<int64_t>(values[index.value]);
    if (at < 0 || at >= buffer.extents[axis]) {
      return fail(4, "index {} of '{}' becomes {}, outside its extent {}",
                  expr_text(kernel_, index), buffer.name, at, buffer.extents[axis]);
    }
  }
}

void Verifier::check_grid_extent(ExprId extent) {
  check_nodes({extent}, {});
  if (type(extent) != Type::s64)
    fail(1, "a grid extent is {}, not s64", tensor::type_name(type(extent)));
  for (ExprId id : reachable(kernel_, {extent})) {
    const Expr& expr = kernel_.expr(id);
    bool fine = expr.op != Op::var && expr.op != Op::load && expr.op != Op::lane &&
                expr.op != Op::shuffle_xor && expr.op != Op::bitcast && expr.op != Op::dot &&
                !tensor::is_float(expr.type);
    if (!fine)
      return fail(8, "the grid extent {} is not made of constants and dims",
                  expr_text(kernel_, extent));
  }
}

}  // namespace heddle::kernel
