#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kernel/lexer.h"
#include "kernel/mma.h"
#include "kernel/stmt_text.h"
#include "kernel/text.h"

namespace heddle::kernel {
namespace {

// A node that a statement uses twice is named if its tree has at least this many nodes; and every
// node at this height, so that neither text nor recursion explodes.
constexpr int64_t kSharedNodes = 6;
constexpr int kMaxHeight = 48;

enum Level { kComparison, kAdditive, kMultiplicative, kPrimary };

struct Infix {
  Op op;
  const char* text;
  Level level;
};
constexpr Infix kInfix[] = {
    {Op::add, " + ", kAdditive},       {Op::sub, " - ", kAdditive},
    {Op::mul, "*", kMultiplicative},   {Op::div, " / ", kMultiplicative},
    {Op::rem, " % ", kMultiplicative}, {Op::eq, " == ", kComparison},
    {Op::ne, " != ", kComparison},     {Op::lt, " < ", kComparison},
    {Op::le, " <= ", kComparison},     {Op::gt, " > ", kComparison},
    {Op::ge, " >= ", kComparison},
};

const Infix* infix(Op op) {
  auto it =
      std::find_if(std::begin(kInfix), std::end(kInfix), [&](auto& row) { return row.op == op; });
  return it == std::end(kInfix) ? nullptr : it;
}

std::string literal(Type type, int64_t imm) {
  if (type == Type::pred) return imm ? "true" : "false";
  if (type == Type::s64) return fmt::format("{}", imm);
  auto bits = static_cast<uint64_t>(imm);
  std::string_view name = tensor::type_name(type);
  if (tensor::is_signed_integer(type)) return fmt::format("{}:{}", imm, name);
  if (!tensor::is_float(type)) return fmt::format("{}:{}", bits, name);
  double value = tensor::float_from_bits(type, bits);
  double plain = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
  if (tensor::float_to_bits(type, plain) != bits) return fmt::format("0x{:x}:{}", bits, name);
  if (std::isnan(value)) return fmt::format("nan:{}", name);
  if (type == Type::f32) return fmt::format("{}:f32", static_cast<float>(value));
  return fmt::format("{}:{}", value, name);
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string print() {
    line("heddle.kernel 1");
    return print_as("kernel", 0);
  }

  // `word`: kernel or inner.
  std::string print_as(std::string_view word, int indent) {
    indent_ = indent;
    line(fmt::format("{} {} {{", word,
                     is_identifier(kernel_.name) ? kernel_.name : quote(kernel_.name)));
    ++indent_;
    header();
    for (const Buffer& buffer : kernel_.buffers) line(buffer_text(kernel_, buffer));
    for (const Kernel& inner : kernel_.inner) out_ += Printer(inner).print_as("inner", indent_);
    for (const Phase& phase : kernel_.phases) {
      line(phase.in_order ? "phase in_order {" : "phase {");
      ++indent_;
      for (const Group& group : phase.groups)
        group.is_table() ? print_table(group) : print_group(group);
      --indent_;
      line("}");
    }
    --indent_;
    line("}");
    return std::move(out_);
  }

  // One line, without the `$n = …` lines.
  std::string head_only(const Stmt& stmt) {
    name_shared(expressions(stmt));
    return head(stmt);
  }
  std::string expr_only(ExprId id) {
    name_shared({id});
    return id.valid() ? node(id) : "?";
  }

 private:
  void line(std::string_view text) {
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }

  void header() {
    if (!kernel_.target.empty()) line("target " + quote(kernel_.target));
    if (!kernel_.strategy.empty()) line("strategy " + quote(kernel_.strategy));
    for (size_t at = 0; at <= kernel_.schedule.size() && !kernel_.schedule.empty();) {
      size_t end = std::min(kernel_.schedule.find('\n', at), kernel_.schedule.size());
      line("schedule " + quote(std::string_view(kernel_.schedule).substr(at, end - at)));
      at = end + 1;
    }
    if (!kernel_.dims.empty()) line(fmt::format("dims {}", fmt::join(kernel_.dims, ", ")));
    if (kernel_.scratch_bytes != 0) line(fmt::format("scratch {}", kernel_.scratch_bytes));
  }

  void print_table(const Group& group) {
    const auto number = static_cast<size_t>(group.inner);
    const std::string name = number < kernel_.inner.size() ? kernel_.inner[number].name : "?";
    line(fmt::format("table {} phase {} {{", is_identifier(name) ? name : quote(name),
                     group.inner_phase));
    ++indent_;
    for (const Instance& row : group.table) {
      std::string text = "row (";
      for (size_t b = 0; b < row.buffers.size(); ++b) {
        const BufferId id = row.buffers[b];
        text += b > 0 ? ", " : "";
        text += id.index() < kernel_.buffers.size() ? kernel_.buffer(id).name : "?";
      }
      text += ")";
      if (!row.dims.empty()) text += fmt::format(" dims {}", fmt::join(row.dims, ", "));
      line(text);
    }
    --indent_;
    line("}");
  }

  void print_group(const Group& group) {
    std::vector<ExprId> extents;
    for (const GridDim& dim : group.grid) extents.push_back(dim.extent);
    name_shared(extents);
    std::string text = "group ";
    if (!group.grid.empty()) {
      std::vector<std::string> dims;
      for (const GridDim& dim : group.grid) dims.push_back(name(dim.var) + " " + expr(dim.extent));
      text += fmt::format("grid ({}) ", fmt::join(dims, ", "));
    }
    if (group.block_threads != 1) text += fmt::format("threads {} ", group.block_threads);
    line(text + "{");
    block(group.body);
    line("}");
  }

  void block(const std::vector<Stmt>& body) {
    ++indent_;
    for (const Stmt& stmt : body) print_stmt(stmt);
    --indent_;
  }

  void print_stmt(const Stmt& stmt) {
    name_shared(expressions(stmt));
    bool has_body = stmt.kind == StmtKind::loop || stmt.kind == StmtKind::branch;
    line(head(stmt) + (has_body ? " {" : ""));
    if (!has_body) return;
    block(stmt.body);
    if (!stmt.otherwise.empty()) {
      line("} else {");
      block(stmt.otherwise);
    }
    line("}");
  }

  std::string head(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::loop: {
        std::string text =
            fmt::format("{} {} {}", loop_text(stmt.loop), name(stmt.var), expr(stmt.extent));
        if (stmt.lanes != 0) text += fmt::format(" lanes {}", stmt.lanes);
        if (stmt.unroll != 1) text += fmt::format(" unroll {}", stmt.unroll);
        return text;
      }
      case StmtKind::let:
        return fmt::format("let {} = {}", name(stmt.var), expr(stmt.value));
      case StmtKind::store: {
        std::string text = access(stmt.buffer, stmt.indices) + " = " + expr(stmt.value);
        if (stmt.mask.valid()) text += " if " + expr(stmt.mask);
        return stmt.streaming ? text + " streaming" : text;
      }
      case StmtKind::branch:
        return "if " + expr(stmt.value);
      case StmtKind::barrier:
        return "barrier";
      case StmtKind::prefetch:
        return fmt::format("prefetch {} level {}{}", access(stmt.buffer, stmt.indices), stmt.level,
                           stmt.for_write ? " write" : "");
      case StmtKind::async_copy:
        return fmt::format("async_copy {} from {} count {}", access(stmt.buffer, stmt.indices),
                           access(stmt.source, stmt.source_indices), stmt.count);
      case StmtKind::async_wait:
        return fmt::format("async_wait {}", stmt.count);
      case StmtKind::mma:
        return mma(stmt);
      case StmtKind::fragment_clear:
        return "fragment_clear " + fragment(stmt);
      case StmtKind::fragment_load:
        return fmt::format("fragment_load {} from {} rows {} stride {}", fragment(stmt),
                           access(stmt.buffer, stmt.indices), stmt.count, stmt.stride);
      case StmtKind::fragment_store:
        return fmt::format("fragment_store {} from {} rows {} stride {}",
                           access(stmt.buffer, stmt.indices), fragment(stmt), stmt.count,
                           stmt.stride);
    }
    HEDDLE_UNREACHABLE();
  }

  // mma name d[…], a[…], b[…], c[…]: each fragment takes rank - 1 of the indices.
  std::string mma(const Stmt& stmt) {
    std::vector<std::string> parts;
    size_t at = 0;
    for (BufferId id : stmt.fragments) {
      size_t rank = id.index() < kernel_.buffers.size() ? kernel_.buffer(id).extents.size() : 0;
      size_t end = std::min(stmt.indices.size(), at + (rank == 0 ? 0 : rank - 1));
      parts.push_back(access(id, {stmt.indices.begin() + static_cast<int64_t>(at),
                                  stmt.indices.begin() + static_cast<int64_t>(end)}));
      at = end;
    }
    return fmt::format("mma {} {}", stmt.name, fmt::join(parts, ", "));
  }

  std::string fragment(const Stmt& stmt) {
    return stmt.fragments.empty() ? "?" : access(stmt.fragments[0], stmt.source_indices);
  }

  std::string name(VarId id) const {
    return id.index() < kernel_.vars.size() ? kernel_.var(id).name : "?";
  }

  std::string access(BufferId id, const std::vector<ExprId>& indices) {
    std::string text = id.index() < kernel_.buffers.size() ? kernel_.buffer(id).name : "?";
    text += '[';
    for (size_t i = 0; i < indices.size(); ++i) text += (i ? ", " : "") + expr(indices[i]);
    return text + ']';
  }

  std::string expr(ExprId id, Level level = kComparison) {
    if (!id.valid()) return "?";
    if (auto it = named_.find(id.value); it != named_.end()) return fmt::format("${}", it->second);
    return node(id, level);
  }

  std::string node(ExprId id, Level level = kComparison) {
    const Expr& e = kernel_.expr(id);
    switch (e.op) {
      case Op::constant:
        return literal(e.type, e.imm);
      case Op::var:
        return name(e.var);
      case Op::dim:
        return e.imm >= 0 && e.imm < static_cast<int64_t>(kernel_.dims.size())
                   ? kernel_.dims[static_cast<size_t>(e.imm)]
                   : "?";
      case Op::load: {
        if (!e.guarded) return access(e.buffer, e.operands);
        size_t rank = e.operands.size() - std::min<size_t>(2, e.operands.size());
        std::string text =
            access(e.buffer, {e.operands.begin(), e.operands.begin() + static_cast<int64_t>(rank)});
        for (size_t i = rank; i < e.operands.size(); ++i) text += ", " + expr(e.operands[i]);
        return "load_if(" + text + ")";
      }
      default:
        break;
    }
    if (const Infix* row = infix(e.op); row && e.operands.size() == 2)
      return binary(e, *row, level);
    std::string text(op_text(e.op));
    for (size_t i = 0; i < e.operands.size(); ++i) text += (i ? ", " : "(") + expr(e.operands[i]);
    if (e.op == Op::convert || e.op == Op::bitcast)
      text += fmt::format(", {}", tensor::type_name(e.type));
    if (e.op == Op::lane || e.op == Op::shuffle_xor) text += fmt::format(", {}", e.imm);
    if (e.op == Op::dot) text += fmt::format(", {}", mma_table()[static_cast<size_t>(e.imm)].name);
    return text + ")";
  }

  std::string binary(const Expr& e, const Infix& row, Level level) {
    Level right = row.level == kMultiplicative ? kPrimary : static_cast<Level>(row.level + 1);
    Level left = row.level == kComparison ? kAdditive : row.level;
    const Expr& operand = kernel_.expr(e.operands[1]);
    // x - 3 is stored as x + -3.
    bool minus = e.op == Op::add && operand.op == Op::constant &&
                 tensor::is_signed_integer(operand.type) && operand.imm < 0 &&
                 operand.imm > INT64_MIN &&
                 (operand.type == Type::s64 ||
                  operand.imm > -(int64_t{1} << (tensor::type_bits(operand.type) - 1)));
    std::string text = expr(e.operands[0], left) + (minus ? " - " : row.text);
    text += minus ? literal(operand.type, -operand.imm) : expr(e.operands[1], right);
    return level > row.level ? "(" + text + ")" : text;
  }

  // Prints `$n = …` for nodes that the expressions of one statement share.
  void name_shared(const std::vector<ExprId>& roots) {
    named_.clear();
    std::map<uint32_t, int> uses;  // by id, so operands come first
    std::vector<ExprId> stack;
    auto use = [&](ExprId id) {
      if (id.valid() && uses[id.value]++ == 0) stack.push_back(id);
    };
    for (ExprId id : roots) use(id);
    while (!stack.empty()) {
      ExprId id = stack.back();
      stack.pop_back();
      for (ExprId operand : kernel_.expr(id).operands) use(operand);
    }
    std::unordered_map<uint32_t, std::pair<int64_t, int>> sizes;  // nodes, height; 1, 0 if named
    for (auto [value, count] : uses) {
      int64_t nodes = 1;
      int height = 0;
      for (ExprId operand : kernel_.expr(ExprId(value)).operands) {
        nodes += sizes[operand.value].first;
        height = std::max(height, sizes[operand.value].second + 1);
      }
      if ((count > 1 && nodes >= kSharedNodes) || height >= kMaxHeight) {
        line(fmt::format("${} = {}", named_.size(), node(ExprId(value))));
        named_.emplace(value, named_.size());
        nodes = 1;
        height = 0;
      }
      sizes[value] = {nodes, height};
    }
  }

  const Kernel& kernel_;
  std::string out_;
  int indent_ = 0;
  std::unordered_map<uint32_t, size_t> named_;
};

std::string shorten(std::string text) {
  constexpr size_t kMax = 160;
  if (text.size() <= kMax) return text;
  return text.substr(0, kMax) + " …";
}

}  // namespace

std::string to_string(const Kernel& kernel) { return Printer(kernel).print(); }

std::string head_text(const Kernel& kernel, const Stmt& stmt) {
  return shorten(Printer(kernel).head_only(stmt));
}

std::string expr_text(const Kernel& kernel, ExprId expr) {
  return shorten(Printer(kernel).expr_only(expr));
}

}  // namespace heddle::kernel
