// Packs tasks of subgroups into blocks; where a block has one task, only its first subgroup does
// the uniform stores.
#include <algorithm>

#include "kernel/rewriter.h"
#include "lower/passes.h"

namespace heddle::lower {

using kernel::BufferId;
using kernel::ExprId;
using kernel::Group;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Rewriter;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using Block = std::vector<Stmt>;

namespace {

constexpr int64_t kSubgroups = 4;            // per block, where each subgroup has a task
constexpr int64_t kBlockScratch = 48 << 10;  // that any launch may have

// Restricts uniform stores to memory, which every subgroup of the block would do, to the first
// subgroup.
Block store_once(Kernel* kernel, const Block& body) {
  Block result;
  for (const Stmt& stmt : body) {
    Stmt made = stmt;
    const bool threads = stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread;
    if (!threads) {
      made.body = store_once(kernel, stmt.body);
      made.otherwise = store_once(kernel, stmt.otherwise);
    }
    const bool memory =
        stmt.kind == StmtKind::store && kernel->buffer(stmt.buffer).space != kernel::Space::reg;
    if (!memory) {
      result.push_back(std::move(made));
      continue;
    }
    const bool joins = !result.empty() && result.back().kind == StmtKind::loop &&
                       result.back().loop == LoopKind::subgroup;
    if (joins) {
      result.back().body.push_back(std::move(made));
      continue;
    }
    Block one;
    one.push_back(std::move(made));
    result.push_back(make_loop(LoopKind::subgroup, kernel->add_var("first"), kernel->constant(1),
                               std::move(one)));
  }
  return result;
}

// Replicates scratch for every subgroup, one after another, and offsets the accesses.
class ScratchSharer {
 public:
  ScratchSharer(Kernel* kernel, int64_t subgroups) : k_(*kernel), bytes_(kernel->scratch_bytes) {
    for (kernel::Buffer& buffer : k_.buffers) {
      if (buffer.space != kernel::Space::scratch) continue;
      buffer.extents[0] += (subgroups - 1) * (bytes_ / tensor::type_bytes(buffer.type));
    }
    k_.scratch_bytes *= subgroups;
  }

  Block share(const Block& body, VarId subgroup) {
    Rewriter rewriter(&k_);
    rewriter.made = [&](const kernel::Expr& load) -> std::optional<ExprId> {
      if (load.op != Op::load || !is_scratch(load.buffer)) return std::nullopt;
      kernel::Expr moved = load;
      moved.operands[0] = further(load.buffer, moved.operands[0], subgroup);
      return k_.add(moved);
    };
    rewriter.statement = [&](const Stmt&, Stmt made, Block* to) {
      if (made.kind == StmtKind::store && is_scratch(made.buffer))
        made.indices[0] = further(made.buffer, made.indices[0], subgroup);
      to->push_back(std::move(made));
    };
    return rewriter.block(body);
  }

 private:
  bool is_scratch(BufferId buffer) const {
    return k_.buffer(buffer).space == kernel::Space::scratch;
  }

  ExprId further(BufferId buffer, ExprId index, VarId subgroup) {
    const int64_t stride = bytes_ / tensor::type_bytes(k_.buffer(buffer).type);
    return k_.binary(Op::add, k_.binary(Op::mul, k_.ref(subgroup), k_.constant(stride)), index);
  }

  Kernel& k_;
  int64_t bytes_;  // of one subgroup
};

// grid (block) { subgroup w n { let task = …; if it is one { lets of the grid; body } } }
Group share_block(Kernel* kernel, Group group, ScratchSharer* scratch, int64_t subgroups) {
  Kernel& k = *kernel;
  int64_t tasks = 1;
  for (const kernel::GridDim& dim : group.grid) tasks *= k.expr(dim.extent).imm;
  const VarId block = k.add_var("block"), w = k.add_var("w"), task = k.add_var("task");
  Block body;
  ExprId rest = k.ref(task);
  for (size_t i = group.grid.size(); i-- > 0;) {
    const int64_t extent = k.expr(group.grid[i].extent).imm;
    const ExprId here = i == 0 ? rest : k.binary(Op::floor_mod, rest, k.constant(extent));
    body.push_back(make_let(group.grid[i].var, here));
    rest = k.binary(Op::floor_div, rest, k.constant(extent));
  }
  for (Stmt& stmt : scratch->share(group.body, w)) body.push_back(std::move(stmt));
  Block inside;
  inside.push_back(make_let(
      task, k.binary(Op::add, k.binary(Op::mul, k.ref(block), k.constant(subgroups)), k.ref(w))));
  if (tasks % subgroups == 0) {
    for (Stmt& stmt : body) inside.push_back(std::move(stmt));
  } else {
    inside.push_back(make_if(k.compare(Op::lt, k.ref(task), k.constant(tasks)), std::move(body)));
  }
  Group result;
  result.grid = {{block, k.constant((tasks + subgroups - 1) / subgroups)}};
  result.block_threads = static_cast<int>(subgroups) * kSubgroup;
  result.body.push_back(make_loop(LoopKind::subgroup, w, k.constant(subgroups), std::move(inside)));
  return result;
}

}  // namespace

Result<bool> make_blocks(Kernel& kernel, const Context& context) {
  const int lanes = context.lanes;
  if (lanes > kSubgroup) {
    for (kernel::Phase& phase : kernel.phases) {
      for (Group& group : phase.groups) {
        group.body = store_once(&kernel, group.body);
        group.block_threads = lanes;
      }
    }
    return true;
  }
  kernel.scratch_bytes = (kernel.scratch_bytes + 63) / 64 * 64;
  const int64_t fit = kBlockScratch / std::max<int64_t>(1, kernel.scratch_bytes);
  const int64_t subgroups = std::clamp<int64_t>(fit, 1, kSubgroups);
  ScratchSharer scratch(&kernel, subgroups);
  for (kernel::Phase& phase : kernel.phases)
    for (Group& group : phase.groups)
      group = share_block(&kernel, std::move(group), &scratch, subgroups);
  return true;
}

}  // namespace heddle::lower
