#include "kernel/expand.h"

#include "base/check.h"
#include "kernel/rewriter.h"

namespace heddle::kernel {

Kernel expand_tables(const Kernel& kernel) {
  Kernel result = kernel;
  result.inner.clear();
  result.phases.clear();
  for (const Phase& phase : kernel.phases) {
    result.phases.emplace_back();
    for (const Group& table : phase.groups) {
      HEDDLE_CHECK(table.is_table(), "{} has groups beside its tables", kernel.name);
      const Kernel& inner = kernel.inner[static_cast<size_t>(table.inner)];
      for (const Instance& row : table.table) {
        if (phase.in_order && !result.phases.back().groups.empty()) result.phases.emplace_back();
        Rewriter copy(inner, row.buffers, &result);
        copy.instead = [&](ExprId, const Expr& expr) -> std::optional<ExprId> {
          if (expr.op != Op::dim) return std::nullopt;
          return result.constant(row.dims[static_cast<size_t>(expr.imm)]);
        };
        for (const Group& group : inner.phases[static_cast<size_t>(table.inner_phase)].groups)
          result.phases.back().groups.push_back(copy.group(group));
      }
    }
  }
  return result;
}

}  // namespace heddle::kernel
