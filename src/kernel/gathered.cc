#include "kernel/gathered.h"

namespace heddle::kernel {
namespace {

struct Reads {
  bool by_place = false, by_data = false;
};

bool find_data_vars(const std::vector<Stmt>& body, const std::vector<bool>& is_data,
                    std::vector<bool>& vars) {
  bool found = false;
  for (const Stmt& stmt : body) {
    if (stmt.kind == StmtKind::let && is_data[stmt.value.index()] && !vars[stmt.var.index()])
      found = vars[stmt.var.index()] = true;
    found |= find_data_vars(stmt.body, is_data, vars);
    found |= find_data_vars(stmt.otherwise, is_data, vars);
  }
  return found;
}

// By expression: whether it is made of something loaded.
std::vector<bool> find_data(const Kernel& k) {
  std::vector<bool> is_data, vars(k.vars.size(), false);
  for (bool again = true; again;) {
    is_data.clear();
    for (const Expr& expr : k.exprs()) {
      bool data = expr.op == Op::load || (expr.op == Op::var && vars[expr.var.index()]);
      for (const ExprId operand : expr.operands) data = data || is_data[operand.index()];
      is_data.push_back(data);
    }
    again = false;
    for (const Phase& phase : k.phases)
      for (const Group& group : phase.groups) again |= find_data_vars(group.body, is_data, vars);
  }
  return is_data;
}

void note_copies(const std::vector<Stmt>& body, std::vector<Reads>& reads) {
  for (const Stmt& stmt : body) {
    if (stmt.kind == StmtKind::async_copy) reads[stmt.source.index()].by_place = true;
    if (stmt.kind == StmtKind::fragment_load) reads[stmt.buffer.index()].by_place = true;
    note_copies(stmt.body, reads);
    note_copies(stmt.otherwise, reads);
  }
}

// By buffer.
std::vector<Reads> find_reads(const Kernel& k) {
  std::vector<Reads> reads(k.buffers.size());
  const std::vector<bool> is_data = find_data(k);
  for (const Expr& expr : k.exprs()) {
    if (expr.op != Op::load) continue;
    bool data = false;
    for (size_t i = 0; i < k.buffer(expr.buffer).extents.size(); ++i)
      data = data || is_data[expr.operands[i].index()];
    Reads& buffer = reads[expr.buffer.index()];
    (data ? buffer.by_data : buffer.by_place) = true;
  }
  for (const Phase& phase : k.phases) {
    for (const Group& group : phase.groups) {
      note_copies(group.body, reads);
      if (!group.is_table()) continue;
      const std::vector<Reads> inner = find_reads(k.inner[static_cast<size_t>(group.inner)]);
      for (const Instance& row : group.table) {
        for (size_t i = 0; i < row.buffers.size(); ++i) {
          Reads& buffer = reads[row.buffers[i].index()];
          buffer.by_place |= inner[i].by_place;
          buffer.by_data |= inner[i].by_data;
        }
      }
    }
  }
  return reads;
}

}  // namespace

std::vector<int64_t> gathered_inputs(const Kernel& kernel) {
  const std::vector<Reads> reads = find_reads(kernel);
  std::vector<int64_t> result;
  for (int64_t i = 0; i < kernel.global_count(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (kernel.buffers[at].access == Access::in && reads[at].by_data && !reads[at].by_place)
      result.push_back(i);
  }
  return result;
}

}  // namespace heddle::kernel
