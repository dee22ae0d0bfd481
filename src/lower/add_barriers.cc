// Adds barriers to a kernel of blocks: between a store to memory that other threads of the block
// can see and the accesses that read or overwrite it. They are placed between loops over threads:
// barriers of the subgroup inside subgroup loops, of the block outside.
#include <algorithm>
#include <map>
#include <set>

#include "kernel/lanes.h"
#include "lower/passes.h"

namespace heddle::lower {

using kernel::BufferId;
using kernel::ExprId;
using kernel::Kernel;
using kernel::LoopKind;
using kernel::Op;
using kernel::Stmt;
using kernel::StmtKind;
using Block = std::vector<Stmt>;

namespace {

struct Touched {
  std::set<BufferId> loads, stores;

  void add(const Touched& other) {
    loads.insert(other.loads.begin(), other.loads.end());
    stores.insert(other.stores.begin(), other.stores.end());
  }
  bool clashes(const Touched& later) const {
    const auto meet = [](const std::set<BufferId>& a, const std::set<BufferId>& b) {
      return std::any_of(a.begin(), a.end(), [&](BufferId id) { return b.contains(id); });
    };
    return meet(stores, later.loads) || meet(stores, later.stores) || meet(loads, later.stores);
  }
};

class BarrierAdder {
 public:
  BarrierAdder(Kernel* kernel, const Block& body, const Context& context) : k_(*kernel) {
    for (size_t b = 0; b < k_.buffers.size(); ++b) memory_[BufferId(b)] = BufferId(b);
    if (context.lanes > kSubgroup) join_shared();
    for (const Stmt& stmt : body) {
      const Touched all = touched(stmt);
      read_.insert(all.loads.begin(), all.loads.end());
    }
    all_read_ = true;
  }

  // `before`: the accesses since the last barrier; on return, those at the end of `body`.
  Block add(const Block& body, Touched* before) {
    Block result;
    for (const Stmt& stmt : body) {
      Stmt made = stmt;
      if (!is_walked(stmt)) {
        const Touched here = touched(stmt);
        if (before->clashes(here)) {
          Stmt barrier;
          barrier.kind = StmtKind::barrier;
          result.push_back(std::move(barrier));
          added_ = true;
          *before = {};
        }
        before->add(here);
      } else if (stmt.kind == StmtKind::branch) {
        Touched otherwise = *before;
        made.body = add(stmt.body, before);
        made.otherwise = add(stmt.otherwise, &otherwise);
        before->add(otherwise);
      } else {
        add_loop(&made, before);
      }
      result.push_back(std::move(made));
    }
    return result;
  }

  bool added() const { return added_; }

 private:
  // A loop's body also follows itself, except in a loop of subgroups, whose iterations run on
  // different subgroups.
  void add_loop(Stmt* loop, Touched* before) {
    Touched end = *before;
    add(loop->body, &end);
    Touched entry = *before;
    if (loop->loop != LoopKind::subgroup) entry.add(end);
    const Touched outside = *before;
    loop->body = add(loop->body, &entry);
    *before = outside;
    before->add(entry);
  }

  // Whether barriers may be placed inside: loops and branches outside thread loops. Stores of the
  // first subgroup alone count as one statement.
  bool is_walked(const Stmt& stmt) const {
    if (stmt.kind == StmtKind::branch) return true;
    if (stmt.kind != StmtKind::loop || stmt.loop == LoopKind::thread) return false;
    return stmt.loop != LoopKind::subgroup || k_.expr(stmt.extent).imm != 1 ||
           holds_threads(stmt.body);
  }

  static bool holds_threads(const Block& body) {
    return std::any_of(body.begin(), body.end(), [](const Stmt& stmt) {
      return (stmt.kind == StmtKind::loop && stmt.loop == LoopKind::thread) ||
             holds_threads(stmt.body) || holds_threads(stmt.otherwise);
    });
  }

  Touched touched(const Stmt& stmt) const {
    Touched result;
    for (ExprId id : kernel::reachable(k_, expressions(stmt)))
      if (k_.expr(id).op == Op::load) add_buffer(k_.expr(id).buffer, &result.loads);
    if (stmt.kind == StmtKind::store) add_buffer(stmt.buffer, &result.stores);
    for (const Stmt& inner : stmt.body) result.add(touched(inner));
    for (const Stmt& inner : stmt.otherwise) result.add(touched(inner));
    return result;
  }

  // Scratch buffers that share bytes count as one. Only blocks with one task have any: where each
  // subgroup has a task, buffers overlap only because make_blocks replicates them.
  void join_shared() {
    for (size_t b = 0; b < k_.buffers.size(); ++b) {
      for (size_t other = 0; other < b; ++other) {
        if (!kernel::share_bytes(k_, BufferId(b), BufferId(other))) continue;
        const BufferId from = memory_[BufferId(b)], to = memory_[BufferId(other)];
        for (auto& [id, memory] : memory_)
          if (memory == from) memory = to;
      }
    }
  }

  // Buffers that are only read, and registers, need no barrier; nor does an output that is not read
  // back: each of its elements is stored once.
  void add_buffer(BufferId id, std::set<BufferId>* to) const {
    const kernel::Buffer& buffer = k_.buffer(id);
    const bool global = buffer.space == kernel::Space::global;
    const bool constant = global && buffer.access == kernel::Access::in;
    const bool only_stored = global && all_read_ && !read_.contains(id);
    if (buffer.space != kernel::Space::reg && !constant && !only_stored) to->insert(memory_.at(id));
  }

  Kernel& k_;
  std::map<BufferId, BufferId> memory_;  // by buffer: the first that it shares bytes with
  std::set<BufferId> read_;              // somewhere in the group
  bool all_read_ = false;                // read_ is complete
  bool added_ = false;                   // a barrier
};

}  // namespace

Result<bool> add_barriers(Kernel& kernel, const Context& context) {
  bool changed = false;
  for (kernel::Phase& phase : kernel.phases) {
    for (kernel::Group& group : phase.groups) {
      BarrierAdder adder(&kernel, group.body, context);
      Touched before;
      group.body = adder.add(group.body, &before);
      changed |= adder.added();
    }
  }
  return changed;
}

}  // namespace heddle::lower
