#include "kernel/blocks.h"

#include <algorithm>

namespace heddle::kernel {

bool meets_block(const Stmt& stmt) {
  if (stmt.kind == StmtKind::barrier) return true;
  if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::subgroup) return false;
  return std::any_of(stmt.body.begin(), stmt.body.end(), meets_block) ||
         std::any_of(stmt.otherwise.begin(), stmt.otherwise.end(), meets_block);
}

}  // namespace heddle::kernel
