#include "kernel/kernel.h"

#include <algorithm>
#include <cctype>

#include "base/hash.h"
#include "kernel/scalar.h"
#include "kernel/simplify.h"

namespace heddle::kernel {
namespace {

struct OpRow {
  std::string_view text;
  int operands;
};

constexpr OpRow kOps[] = {
#define HEDDLE_KERNEL_OP(name, operands, ...) {#name, operands},
#include "kernel/ops.def"
};

uint64_t hash_of(const Expr& expr) {
  uint64_t words[5] = {static_cast<uint64_t>(expr.op) | static_cast<uint64_t>(expr.type) << 8 |
                           static_cast<uint64_t>(expr.guarded) << 16,
                       static_cast<uint64_t>(expr.imm), expr.var.value, expr.buffer.value,
                       expr.operands.size()};
  uint64_t seed = 0;
  if (!expr.operands.empty()) {
    static_assert(sizeof(ExprId) == 4);
    seed = hash64({reinterpret_cast<const char*>(expr.operands.data()), expr.operands.size() * 4});
  }
  return hash64({reinterpret_cast<const char*>(words), sizeof(words)}, seed);
}

// Letters, digits, '_' and '.', not starting with a digit.
std::string identifier(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '_';
  }
  if (result.empty() ||
      !(std::isalpha(static_cast<unsigned char>(result[0])) || result[0] == '_')) {
    result = "_" + result;
  }
  if (result == "true" || result == "false") result += "_";
  return result;
}

}  // namespace

std::string_view op_text(Op op) {
  std::string_view text = kOps[static_cast<size_t>(op)].text;
  if (text.back() == '_') text.remove_suffix(1);
  return text;
}

int op_operands(Op op) { return kOps[static_cast<size_t>(op)].operands; }

int64_t Kernel::global_count() const {
  return std::count_if(buffers.begin(), buffers.end(),
                       [](const Buffer& buffer) { return buffer.space == Space::global; });
}

ExprId Kernel::add(Expr expr) {
  for (ExprId id : expr.operands) HEDDLE_CHECK(id.index() < exprs_.size(), "no such operand");
  if (auto simpler = simplify(*this, expr)) return *simpler;
  std::vector<uint32_t>& bucket = interned_[hash_of(expr)];
  for (uint32_t i : bucket) {
    if (exprs_[i] == expr) return ExprId(i);
  }
  ExprId id(exprs_.size());
  bucket.push_back(id.value);
  exprs_.push_back(std::move(expr));
  return id;
}

std::string Kernel::unique_name(std::string_view wanted) {
  for (; named_dims_ < dims.size(); ++named_dims_) names_.insert(dims[named_dims_]);
  for (; named_buffers_ < buffers.size(); ++named_buffers_) {
    names_.insert(buffers[named_buffers_].name);
  }
  for (; named_vars_ < vars.size(); ++named_vars_) names_.insert(vars[named_vars_].name);
  std::string base = identifier(wanted), name = base;
  for (int64_t& i = suffixes_[base]; names_.contains(name);) name = fmt::format("{}_{}", base, ++i);
  return name;
}

BufferId Kernel::add_buffer(Buffer buffer) {
  buffer.name = unique_name(buffer.name);
  buffers.push_back(std::move(buffer));
  return BufferId(buffers.size() - 1);
}

BufferId Kernel::add_scratch(std::string name, Type type, int64_t elems) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.type = type;
  buffer.extents = {elems};
  buffer.space = Space::scratch;
  buffer.offset_bytes = aligned_scratch(scratch_bytes);
  scratch_bytes = buffer.offset_bytes + aligned_scratch(elems * tensor::type_bytes(type));
  return add_buffer(std::move(buffer));
}

VarId Kernel::add_var(std::string_view name, Type type) {
  vars.push_back({unique_name(name), type});
  return VarId(vars.size() - 1);
}

ExprId Kernel::constant(Type type, double value) {
  return add({Op::constant,
              type,
              {},
              static_cast<int64_t>(
                  convert_bits(Type::f64, type, tensor::float_to_bits(Type::f64, value)))});
}

ExprId Kernel::convert(ExprId x, Type type) {
  return expr(x).type == type ? x : add({Op::convert, type, {x}});
}

ExprId Kernel::load(BufferId id, std::vector<ExprId> indices) {
  return add({Op::load, buffer(id).type, std::move(indices), 0, {}, id});
}

ExprId Kernel::load_if(BufferId id, std::vector<ExprId> indices, ExprId mask, ExprId other) {
  indices.push_back(mask);
  indices.push_back(other);
  return add({Op::load, buffer(id).type, std::move(indices), 0, {}, id, true});
}

bool share_bytes(const Kernel& kernel, BufferId a, BufferId b) {
  if (a == b) return true;
  const Buffer &one = kernel.buffer(a), &other = kernel.buffer(b);
  if (one.space != Space::scratch || other.space != Space::scratch) return false;
  auto end = [](const Buffer& buffer) {
    int64_t elems = 1;
    for (int64_t extent : buffer.extents) elems *= extent;
    return buffer.offset_bytes + elems * tensor::type_bytes(buffer.type);
  };
  return one.offset_bytes < end(other) && other.offset_bytes < end(one);
}

Stmt make_loop(LoopKind kind, VarId var, ExprId extent, std::vector<Stmt> body, int lanes,
               int unroll) {
  HEDDLE_CHECK(var.valid() && extent.valid());
  Stmt stmt{StmtKind::loop};
  stmt.loop = kind;
  stmt.var = var;
  stmt.extent = extent;
  stmt.lanes = lanes;
  stmt.unroll = unroll;
  stmt.body = std::move(body);
  return stmt;
}

Stmt make_let(VarId var, ExprId value) {
  HEDDLE_CHECK(var.valid() && value.valid());
  Stmt stmt{StmtKind::let};
  stmt.var = var;
  stmt.value = value;
  return stmt;
}

Stmt make_store(BufferId buffer, std::vector<ExprId> indices, ExprId value, ExprId mask) {
  HEDDLE_CHECK(buffer.valid() && value.valid());
  Stmt stmt{StmtKind::store};
  stmt.buffer = buffer;
  stmt.indices = std::move(indices);
  stmt.value = value;
  stmt.mask = mask;
  return stmt;
}

Stmt make_if(ExprId condition, std::vector<Stmt> then, std::vector<Stmt> otherwise) {
  HEDDLE_CHECK(condition.valid());
  Stmt stmt{StmtKind::branch};
  stmt.value = condition;
  stmt.body = std::move(then);
  stmt.otherwise = std::move(otherwise);
  return stmt;
}

std::vector<ExprId> expressions(const Stmt& stmt) {
  std::vector<ExprId> result;
  auto add = [&](ExprId id) {
    if (id.valid()) result.push_back(id);
  };
  add(stmt.extent);
  for (ExprId id : stmt.indices) add(id);
  for (ExprId id : stmt.source_indices) add(id);
  add(stmt.value);
  add(stmt.mask);
  return result;
}

int64_t evaluate_extent(const Kernel& kernel, ExprId extent, const std::vector<int64_t>& dims) {
  // Operands have smaller ids than their node.
  std::unordered_map<uint32_t, uint64_t> values;
  std::vector<ExprId> stack = {extent};
  while (!stack.empty()) {
    ExprId id = stack.back();
    const Expr& expr = kernel.expr(id);
    bool ready = true;
    for (ExprId operand : expr.operands) {
      if (values.contains(operand.value)) continue;
      stack.push_back(operand);
      ready = false;
    }
    if (!ready) continue;
    stack.pop_back();
    auto operand = [&](size_t i) {
      return i < expr.operands.size() ? values[expr.operands[i].value] : 0;
    };
    if (expr.op == Op::constant) {
      values[id.value] = static_cast<uint64_t>(expr.imm);
    } else if (expr.op == Op::dim) {
      HEDDLE_CHECK(expr.imm >= 0 && expr.imm < static_cast<int64_t>(dims.size()), "dim {}",
                   expr.imm);
      values[id.value] = static_cast<uint64_t>(dims[static_cast<size_t>(expr.imm)]);
    } else if (expr.op == Op::convert) {
      values[id.value] = convert_bits(kernel.expr(expr.operands[0]).type, expr.type, operand(0));
    } else {
      // select's type is that of its choices, every other op's that of its operands.
      Type type = expr.op == Op::select ? expr.type : kernel.expr(expr.operands.at(0)).type;
      values[id.value] = evaluate(expr.op, type, operand(0), operand(1), operand(2));
    }
  }
  return static_cast<int64_t>(values[extent.value]);
}

int64_t task_count(const Kernel& kernel, const Phase& phase, const std::vector<int64_t>& dims) {
  int64_t total = 0;
  if (phase.in_order) return 1;
  for (const Group& group : phase.groups) {
    if (group.is_table()) {
      const Kernel& inner = kernel.inner[static_cast<size_t>(group.inner)];
      for (const Instance& row : group.table)
        total += task_count(inner, inner.phases[static_cast<size_t>(group.inner_phase)], row.dims);
      continue;
    }
    int64_t tasks = 1;
    for (const GridDim& dim : group.grid) {
      tasks *= std::max<int64_t>(0, evaluate_extent(kernel, dim.extent, dims));
    }
    total += tasks;
  }
  return total;
}

}  // namespace heddle::kernel
