#include "stitch/gpu_blocks.h"

#include <algorithm>

#include "schedule/place_gpu_rows.h"
#include "stitch/rewrite.h"

namespace heddle::stitch {

using kernel::Group;
using kernel::Kernel;
using kernel::StmtKind;

namespace {

constexpr int kSubgroup = 32;
constexpr int64_t kSubgroups = 4;            // of a block, where tasks are subgroups'
constexpr int64_t kBlockScratch = 48 << 10;  // that any launch may have

class ThreadCutter {
 public:
  ThreadCutter(Kernel* kernel, int lanes) : k_(*kernel), lanes_(lanes) {}

  Block cut(const Block& body) {
    Block result;
    for (const Stmt& stmt : body) {
      Stmt made = stmt;
      made.body = cut(stmt.body);
      made.otherwise = cut(stmt.otherwise);
      if (stmt.kind != StmtKind::loop || stmt.loop != LoopKind::vector) {
        result.push_back(std::move(made));
        continue;
      }
      HEDDLE_CHECK(stmt.lanes == lanes_, "a loop of {} lanes among threads", stmt.lanes);
      made.loop = LoopKind::thread;
      const kernel::Expr& extent = k_.expr(stmt.extent);
      if (extent.op != Op::constant || extent.imm <= lanes_)
        result.push_back(std::move(made));
      else
        add_cut(std::move(made), extent.imm, &result);
    }
    return result;
  }

 private:
  // serial k { thread l { let i = k·lanes + l; … } }, and the rest.
  void add_cut(Stmt loop, int64_t extent, Block* to) {
    const int64_t whole = extent / lanes_, rest = extent % lanes_;
    Block tail;
    if (rest > 0) {
      Rewriter copy(&k_);
      copy.fresh = true;
      tail = copy.block({loop});
      add_named(&tail[0], k_.constant(whole * lanes_), rest);
    }
    VarId k = k_.add_var("k");
    add_named(&loop, k_.binary(Op::mul, k_.ref(k), k_.constant(lanes_)), lanes_);
    Block inside;
    inside.push_back(std::move(loop));
    to->push_back(make_loop(LoopKind::serial, k, k_.constant(whole), std::move(inside)));
    for (Stmt& stmt : tail) to->push_back(std::move(stmt));
  }

  void add_named(Stmt* loop, ExprId first, int64_t extent) {
    const VarId index = loop->var;
    loop->var = k_.add_var("l");
    loop->extent = k_.constant(extent);
    loop->body.insert(loop->body.begin(),
                      make_let(index, k_.binary(Op::add, first, k_.ref(loop->var))));
  }

  Kernel& k_;
  int lanes_;
};

// Runs of uniform stores to memory, which every subgroup of the block would do.
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

// Scratch of every subgroup behind one another: an access is so many elements further on.
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
    rewriter.load = [&](const kernel::Expr& load) -> std::optional<ExprId> {
      if (k_.buffer(load.buffer).space != kernel::Space::scratch) return std::nullopt;
      kernel::Expr moved = load;
      moved.operands[0] = further(load.buffer, moved.operands[0], subgroup);
      return k_.add(moved);
    };
    Block result = rewriter.block(body);
    move_stores(&result, subgroup);
    return result;
  }

 private:
  ExprId further(BufferId buffer, ExprId index, VarId subgroup) {
    const int64_t stride = bytes_ / tensor::type_bytes(k_.buffer(buffer).type);
    return k_.binary(Op::add, k_.binary(Op::mul, k_.ref(subgroup), k_.constant(stride)), index);
  }

  void move_stores(Block* body, VarId subgroup) {
    for (Stmt& stmt : *body) {
      if (stmt.kind == StmtKind::store && k_.buffer(stmt.buffer).space == kernel::Space::scratch)
        stmt.indices[0] = further(stmt.buffer, stmt.indices[0], subgroup);
      move_stores(&stmt.body, subgroup);
      move_stores(&stmt.otherwise, subgroup);
    }
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

// A store of a whole subgroup's: its lanes have all read what one of them overwrites.
bool stores_uniformly(const Kernel& kernel, const Block& body) {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& stmt) {
    if (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread) return false;
    const bool here =
        stmt.kind == StmtKind::store && kernel.buffer(stmt.buffer).space == kernel::Space::global;
    return here || stores_uniformly(kernel, stmt.body) || stores_uniformly(kernel, stmt.otherwise);
  });
}

// Threads of a block may read what another one overwrites, but for maps, element by element.
bool may_be_in_place(const Kernel& kernel, const schedule::StageGraph& graph) {
  if (graph.stages.size() > 1) return false;
  for (const kernel::Phase& phase : kernel.phases)
    for (const Group& group : phase.groups)
      if (stores_uniformly(kernel, group.body)) return false;
  return true;
}

}  // namespace

void cut_into_threads(Kernel* kernel, int lanes) {
  ThreadCutter cutter(kernel, lanes);
  for (kernel::Phase& phase : kernel->phases)
    for (Group& group : phase.groups) group.body = cutter.cut(group.body);
}

void make_blocks(Kernel* kernel, int lanes) {
  if (lanes > kSubgroup) {
    for (kernel::Phase& phase : kernel->phases) {
      for (Group& group : phase.groups) {
        group.body = store_once(kernel, group.body);
        group.block_threads = lanes;
      }
    }
    return;
  }
  kernel->scratch_bytes = (kernel->scratch_bytes + 63) / 64 * 64;
  const int64_t fit = kBlockScratch / std::max<int64_t>(1, kernel->scratch_bytes);
  const int64_t subgroups = std::clamp<int64_t>(fit, 1, kSubgroups);
  ScratchSharer scratch(kernel, subgroups);
  for (kernel::Phase& phase : kernel->phases)
    for (Group& group : phase.groups)
      group = share_block(kernel, std::move(group), &scratch, subgroups);
}

Stitched stitch_blocks(const schedule::PlacedFusion& placed, const std::string& name,
                       const target::Target& target) {
  schedule::PlacedFusion plain = placed;
  plain.schedule = schedule::without_threads(placed.schedule);
  const int lanes = placed.schedule.phases.at(0).at(0).lanes;
  const target::Target view = schedule::view_of_threads(target, lanes);
  Stitched result = Stitcher(plain, name, view, {}).run();
  cut_into_threads(&result.kernel, lanes);
  hold_in_registers(&result.kernel, lanes);
  make_blocks(&result.kernel, lanes);
  add_barriers(&result.kernel);
  if (!may_be_in_place(result.kernel, placed.graph)) {
    for (size_t o = 0; o < result.in_place.size(); ++o)
      if (!result.in_part[o]) result.in_place[o] = -1;
    result.may_overwrite.clear();
  }
  result.kernel.schedule = schedule::to_string(placed.schedule, placed.graph);
  return result;
}

}  // namespace heddle::stitch
