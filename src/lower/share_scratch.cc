// Scratch buffers that are not alive together share bytes: best fit by live ranges within a task.
// Statements are numbered in their order. A buffer is alive from its first access to its last, and
// throughout a loop with accesses inside, unless all its accesses are inside and each iteration
// stores the whole buffer before it loads from it.
#include <algorithm>
#include <map>
#include <set>

#include "arena/offsets.h"
#include "kernel/lanes.h"
#include "kernel/linear.h"
#include "lower/passes.h"

namespace heddle::lower {

using kernel::BufferId;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;
using kernel::VarId;
using Block = std::vector<Stmt>;

namespace {

struct Loop {
  VarId var;
  int64_t trips = 0;  // 0: known at run time only
  int64_t begin = 0, end = 0;
  int branches = 0;  // around it
};

struct Access {
  int64_t at = 0;
  const Stmt* store = nullptr;  // null: a load, or a copy of several elements
  std::vector<size_t> loops;    // around it, outermost first
  int branches = 0;             // around it
};

class LiveRanges {
 public:
  explicit LiveRanges(const Kernel& kernel) : k_(kernel), accesses_(kernel.buffers.size()) {}

  // Groups must be added in order.
  void add(const Block& body) { walk(body, 0); }

  // The statements from the first to the last where the buffer is alive; bytes 0: never.
  arena::Block of(size_t buffer) const {
    const std::vector<Access>& accesses = accesses_[buffer];
    const kernel::Buffer& what = k_.buffers[buffer];
    if (accesses.empty()) return {};
    arena::Block block;
    block.bytes = kernel::aligned_scratch(what.extents[0] * tensor::type_bytes(what.type));
    block.first = accesses.front().at;
    block.last = accesses.back().at;
    std::map<size_t, size_t> inside;  // accesses by loop
    for (const Access& access : accesses)
      for (size_t loop : access.loops) ++inside[loop];
    for (const auto& [number, count] : inside) {
      if (count == accesses.size() && is_stored_first(accesses, number)) continue;
      block.first = std::min(block.first, loops_[number].begin);
      block.last = std::max(block.last, loops_[number].end);
    }
    return block;
  }

 private:
  void walk(const Block& body, int branches) {
    for (const Stmt& stmt : body) {
      const int64_t at = next_++;
      if (stmt.kind == StmtKind::let) lets_[stmt.var.value] = stmt.value;
      std::set<BufferId> loaded;
      for (ExprId id : kernel::reachable(k_, expressions(stmt)))
        if (k_.expr(id).op == Op::load) loaded.insert(k_.expr(id).buffer);
      for (BufferId buffer : loaded) note(buffer, {at, nullptr, around_, branches});
      note(stmt.source, {at, nullptr, around_, branches});
      note(stmt.buffer, {at, stmt.kind == StmtKind::store ? &stmt : nullptr, around_, branches});
      if (stmt.kind != StmtKind::loop) {
        walk(stmt.body, branches + 1);
        walk(stmt.otherwise, branches + 1);
        continue;
      }
      const kernel::Expr& extent = k_.expr(stmt.extent);
      const size_t number = loops_.size();
      loops_.push_back({stmt.var, extent.op == Op::constant ? extent.imm : 0, at, at, branches});
      around_.push_back(number);
      walk(stmt.body, branches);
      around_.pop_back();
      loops_[number].end = next_++;
    }
  }

  void note(BufferId buffer, Access access) {
    if (buffer.valid() && k_.buffer(buffer).space == kernel::Space::scratch)
      accesses_[buffer.index()].push_back(std::move(access));
  }

  // Whether each iteration of the loop stores every element before it loads one: the first access
  // must be a store of all elements, in loops that load nothing of the buffer.
  bool is_stored_first(const std::vector<Access>& accesses, size_t loop) const {
    const Access& first = accesses.front();
    if (!first.store || first.store->mask.valid() || first.store->indices.size() != 1 ||
        first.branches != loops_[loop].branches)
      return false;
    const kernel::Linear index = kernel::linear(k_, first.store->indices[0], [this](VarId var) {
      const auto found = lets_.find(var.value);
      return found == lets_.end() ? ExprId() : found->second;
    });
    if (!index.is_of_variables() || index.constant != 0) return false;
    std::vector<std::pair<int64_t, int64_t>> digits;  // factors and trips of the index's variables
    for (const kernel::Linear::Term& term : index.terms) {
      const auto own = std::ranges::find_if(first.loops, [&](size_t l) {
        return loops_[l].begin > loops_[loop].begin && loops_[l].var == term.var;
      });
      if (own == first.loops.end() || !only_stores(accesses, loops_[*own])) return false;
      digits.emplace_back(term.factor, loops_[*own].trips);
    }
    std::ranges::sort(digits);
    int64_t next = 1;
    for (const auto& [factor, trips] : digits) {
      if (factor != next) return false;
      next *= trips;
    }
    return next == k_.buffer(first.store->buffer).extents[0];
  }

  static bool only_stores(const std::vector<Access>& accesses, const Loop& loop) {
    return std::ranges::none_of(accesses, [&](const Access& access) {
      return !access.store && access.at > loop.begin && access.at < loop.end;
    });
  }

  const Kernel& k_;
  std::vector<std::vector<Access>> accesses_;  // by buffer, in order
  std::vector<Loop> loops_;
  std::vector<size_t> around_;  // loops around the current statement
  std::map<uint32_t, ExprId> lets_;
  int64_t next_ = 0;
};

}  // namespace

// Little scratch stays where it is: all of it fits L1. On a GPU, reusing bytes costs a barrier, so
// it is for scratch that limits the number of concurrent blocks. Subgroups with a task each have
// little scratch, which make_blocks replicates.
static bool is_worth_it(const Kernel& kernel, const Context& context) {
  constexpr int64_t kLimitsBlocks = 16 << 10;
  if (context.lanes == 0) return 2 * kernel.scratch_bytes > context.target->first_cache_bytes();
  return context.lanes > kSubgroup && kernel.scratch_bytes > kLimitsBlocks;
}

Result<bool> share_scratch(Kernel& kernel, const Context& context) {
  if (!is_worth_it(kernel, context)) return false;
  LiveRanges ranges(kernel);
  for (const kernel::Phase& phase : kernel.phases)
    for (const kernel::Group& group : phase.groups) ranges.add(group.body);
  std::vector<arena::Block> blocks;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) blocks.push_back(ranges.of(b));
  constexpr int64_t kWork = 10'000;
  const arena::Offsets layout = arena::assign_offsets(blocks, kWork);
  if (layout.height_bytes >= kernel.scratch_bytes) return false;
  for (size_t b = 0; b < kernel.buffers.size(); ++b)
    if (kernel.buffers[b].space == kernel::Space::scratch)
      kernel.buffers[b].offset_bytes = layout.offsets[b];
  kernel.scratch_bytes = layout.height_bytes;
  return true;
}

}  // namespace heddle::lower
