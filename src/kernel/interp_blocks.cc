// Blocks of threads (blocks.h): every subgroup runs on its own until a barrier of the block. Such
// barriers are in control flow that is uniform over the block, so all subgroups run a statement
// with a barrier together, and everything else one after the other.
#include <algorithm>

#include "kernel/blocks.h"
#include "kernel/interp_exec.h"

namespace heddle::kernel {

void InterpExec::run_threads(const GroupPlan& plan, int threads) {
  threads_ = threads;
  const auto subgroups = static_cast<size_t>(threads / kSubgroupLanes);
  while (subgroup_cells_.size() < subgroups) subgroup_cells_.push_back(program_.cells);
  for (std::vector<uint64_t>& cells : subgroup_cells_)
    for (Slot slot : plan.vars) cells[slot.at] = program_.cells[slot.at];
  subgroup_copies_.resize(subgroups);
  memory_.clocks().begin_block(static_cast<int>(subgroups));
  run_together(plan.body);
  for (size_t s = 0; s < subgroups; ++s) {
    enter(s);
    end_copies();
  }
  memory_.clocks().end_block();
  memory_.enter_subgroup(0);
  cells_ = program_.cells.data();
  threads_ = 0;
}

void InterpExec::enter(size_t subgroup) {
  cells_ = subgroup_cells_[subgroup].data();
  copies_ = &subgroup_copies_[subgroup];
  memory_.enter_subgroup(static_cast<int>(subgroup));
}

void InterpExec::run_together(const std::vector<Node>& nodes) {
  const size_t subgroups = static_cast<size_t>(threads_ / kSubgroupLanes);
  for (size_t begin = 0; begin < nodes.size() && !stopped_;) {
    if (nodes[begin].meets) {
      run_meeting(nodes[begin++]);
      continue;
    }
    size_t end = begin;
    while (end < nodes.size() && !nodes[end].meets) ++end;
    for (size_t s = 0; s < subgroups; ++s) {
      // Odd tasks run them in reverse: the order of subgroups must not matter.
      enter(task_ % 2 == 0 ? s : subgroups - 1 - s);
      for (size_t i = begin; i < end && !stopped_; ++i) run_node(nodes[i]);
    }
    begin = end;
  }
}

// A barrier, or a loop or branch around one. All subgroups must take the same path.
void InterpExec::run_meeting(const Node& node) {
  if (!step()) return;
  stmt_ = node.stmt;
  if (node.stmt->kind == StmtKind::barrier) {
    ++report_.barriers;
    memory_.clocks().block_barrier();
    return;
  }
  const size_t subgroups = static_cast<size_t>(threads_ / kSubgroupLanes);
  const bool loops = node.stmt->kind == StmtKind::loop;
  uint64_t way = 0;
  for (size_t s = 0; s < subgroups; ++s) {
    enter(s);
    run_instrs(node.begin, node.end);
    const uint64_t here = cells_[loops ? node.extent.at : node.value.at];
    if (s > 0 && here != way) {
      if (divided_.insert(node.stmt).second)
        add_fault(where(node.stmt, -1) + ": subgroups take different paths around a barrier");
      return;
    }
    way = here;
  }
  if (!loops) return run_together(way ? node.body : node.otherwise);
  loops_.push_back(node.stmt->var);
  for (int64_t i = 0; i < static_cast<int64_t>(way) && !stopped_; ++i) {
    for (std::vector<uint64_t>& cells : subgroup_cells_)
      cells[node.var.at] = static_cast<uint64_t>(i);
    run_together(node.body);
  }
  loops_.pop_back();
}

// Activates the subgroup's own lanes of a loop over threads; `active` has one entry per lane.
int InterpExec::activate(std::vector<uint8_t>& active, int64_t first, int64_t trips) const {
  const auto lanes = static_cast<int64_t>(active.size());
  int64_t begin = 0, end = lanes;
  if (threads_ > kSubgroupLanes && lanes == threads_) {
    begin = int64_t{memory_.clocks().subgroup()} * kSubgroupLanes;
    end = begin + kSubgroupLanes;
  }
  int count = 0;
  for (int64_t l = 0; l < lanes; ++l) {
    const bool runs = l >= begin && l < end && first + l < trips;
    active[static_cast<size_t>(l)] = runs;
    count += runs;
  }
  return count;
}

void InterpExec::count_traffic(const AccessPlan& plan) {
  if (threads_ > 0 && !touched_.empty()) memory_.count_traffic(plan.buffer, touched_);
}

}  // namespace heddle::kernel
