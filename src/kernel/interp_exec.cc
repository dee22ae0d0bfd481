#include "kernel/interp_exec.h"

#include <algorithm>

#include "kernel/blocks.h"
#include "kernel/lanes.h"
#include "kernel/stmt_text.h"

namespace heddle::kernel {
InterpExec::InterpExec(const Kernel& kernel, InterpProgram program, InterpMemory& memory,
                       size_t max_faults, int64_t max_steps)
    : kernel_(kernel),
      program_(std::move(program)),
      memory_(memory),
      max_faults_(max_faults),
      max_steps_(max_steps) {
  cells_ = program_.cells.data();
  report_.op_counts.resize(kOpCount);
}

void InterpExec::add_fault(std::string text) {
  if (report_.faults.size() < max_faults_) report_.faults.push_back(std::move(text));
}

// "phase 0 group 0: y[r, c] = x[r, c] at r=3 c=17"
std::string InterpExec::where(const Stmt* stmt, int lane) const {
  std::string text = fmt::format("phase {} group {}: {}", phase_, group_,
                                 stmt ? head_text(kernel_, *stmt) : "the task's end");
  for (size_t i = 0; i < loops_.size(); ++i) {
    Slot slot = program_.var_slots[loops_[i].index()];
    auto value = static_cast<int64_t>(
        cells_[slot.at + static_cast<uint32_t>(slot.step * std::max(0, lane))]);
    text += fmt::format("{}{}={}", i ? " " : " at ", kernel_.var(loops_[i]).name, value);
  }
  return text;
}

void InterpExec::fault(const AccessPlan& plan, Fault fault, int lane, std::string text) {
  uint32_t bit = 1u << static_cast<int>(fault);
  if (plan.reported & bit) return;
  plan.reported |= bit;
  add_fault(where(plan.stmt, lane) + ": " + text);
}

int64_t InterpExec::locate(const AccessPlan& plan, int lane, const char* what, int64_t count) {
  const InterpMemory::View& view = memory_.view(plan.buffer);
  int64_t at = 0;
  bool inside = true;
  size_t rank = view.extents.size();
  for (size_t axis = 0; axis < rank; ++axis) {
    Slot slot = plan.indices[axis];
    auto index = static_cast<int64_t>(cells_[slot.at + static_cast<uint32_t>(slot.step * lane)]);
    int64_t extent = axis + 1 == rank ? view.extents[axis] - (count - 1) : view.extents[axis];
    inside = inside && index >= 0 && index < extent;
    at += static_cast<int64_t>(static_cast<uint64_t>(index) *
                               static_cast<uint64_t>(view.strides[axis]));
  }
  if (inside && (rank != 0 || count == 1)) return at;
  std::vector<int64_t> indices;
  for (Slot slot : plan.indices) {
    indices.push_back(
        static_cast<int64_t>(cells_[slot.at + static_cast<uint32_t>(slot.step * lane)]));
  }
  std::string some = count == 1 ? "" : fmt::format(" ({} elements)", count);
  fault(plan, Fault::bounds, lane,
        fmt::format("{} of {}[{}]{} is out of bounds, its extents are [{}]", what,
                    kernel_.buffer(plan.buffer).name, fmt::join(indices, ", "), some,
                    fmt::join(view.extents, ", ")));
  return -1;
}

void InterpExec::hazard(const AccessPlan& plan, Hazard hazard, int64_t at, int lane, bool storing) {
  const InterpMemory::View& view = memory_.view(plan.buffer);
  std::string element = kernel_.buffer(plan.buffer).name + element_text(view, at);
  std::string what = (storing ? "store to " : "read of ") + element;
  switch (hazard) {
    case Hazard::none:
      return;
    case Hazard::unwritten:
      return fault(plan, Fault::unwritten, lane, what + ", which nobody has written");
    case Hazard::overwritten:
      return fault(plan, Fault::overwritten, lane,
                   what + ", whose bytes another buffer has overwritten");
    case Hazard::pending:
      return fault(plan, Fault::pending, lane, what + " while an async copy to it is pending");
    case Hazard::race:
      return fault(
          plan, Fault::race, lane,
          what + ", which another task of the phase " + (storing ? "reads or writes" : "writes"));
    case Hazard::thread_race:
      return fault(plan, Fault::thread_race, lane,
                   what + ", which another thread of the block " +
                       (storing ? "reads or writes" : "writes") + " without a barrier between");
  }
}

void InterpExec::run_task(size_t phase, int64_t task) {
  memory_.begin_task(task);
  phase_ = phase;
  task_ = task;
  loops_.clear();
  int64_t rest = task;
  for (group_ = 0;; ++group_) {
    const GroupPlan& plan = program_.phases[phase][group_];
    const Group& group = kernel_.phases[phase].groups[group_];
    if (rest >= plan.tasks) {
      rest -= plan.tasks;
      continue;
    }
    for (size_t i = plan.extents.size(); i-- > 0;) {
      cells_[plan.vars[i].at] = static_cast<uint64_t>(rest % plan.extents[i]);
      rest /= plan.extents[i];
    }
    for (const GridDim& dim : group.grid) loops_.push_back(dim.var);
    if (has_threads(group)) return run_threads(plan, group.block_threads);
    copies_ = &task_copies_;
    run_block(plan.body);
    break;
  }
  end_copies();
}

void InterpExec::end_copies() {
  copies_->pending.push_back(std::move(copies_->open));
  copies_->open.clear();
  for (const std::vector<Copy>& copies : copies_->pending) {
    if (copies.empty()) continue;
    fault(program_.accesses[copies[0].access], Fault::wait, 0,
          "the task ends before an async_wait for this copy");
  }
  copies_->pending.clear();
}

void InterpExec::run_block(const std::vector<Node>& nodes) {
  memory_.begin_accesses();
  for (const Node& node : nodes) {
    if (stopped_) return;
    run_node(node);
  }
}

bool InterpExec::step() {
  if (++steps_ <= max_steps_) return true;
  if (!stopped_) add_fault(fmt::format("given up after {} statements", max_steps_));
  stopped_ = true;
  return false;
}

void InterpExec::run_node(const Node& node) {
  if (!step()) return;
  stmt_ = node.stmt;
  run_instrs(node.begin, node.end);
  if (node.stmt->kind != StmtKind::let && node.stmt->kind != StmtKind::store)
    memory_.begin_accesses();
  switch (node.stmt->kind) {
    case StmtKind::loop:
      return run_loop(node);
    case StmtKind::let:
      return run_let(node);
    case StmtKind::store:
      return run_store(node);
    case StmtKind::branch:
      return run_branch(node);
    case StmtKind::barrier:
      if (threads_ == 0) {
        ++report_.barriers;
      } else {  // of the subgroup: the block's are met in run_meeting
        ++report_.subgroup_barriers;
        memory_.clocks().subgroup_barrier();
      }
      return;
    case StmtKind::prefetch:
      report_.prefetches += lanes_ == 0 ? 1 : active_count_;
      return;
    case StmtKind::async_copy:
      return run_async_copy(node);
    case StmtKind::async_wait:
      return run_async_wait(node.stmt->count);
    case StmtKind::mma:
      return run_mma(node);
    case StmtKind::fragment_clear:
    case StmtKind::fragment_load:
    case StmtKind::fragment_store:
      return move_fragment(node);
  }
}

void InterpExec::run_loop(const Node& node) {
  auto trips = static_cast<int64_t>(cells_[node.extent.at]);
  loops_.push_back(node.stmt->var);
  if (is_lane_loop(node.stmt->loop)) {
    run_lane_loop(node, trips);
  } else {
    const bool shared = node.stmt->loop == LoopKind::subgroup && threads_ > 0;
    const int64_t first = shared ? memory_.clocks().subgroup() : 0;
    const int64_t step_by = shared ? threads_ / kSubgroupLanes : 1;
    for (int64_t i = first; i < trips && !stopped_; i += step_by) {
      cells_[node.var.at] = static_cast<uint64_t>(i);
      if (node.body.empty() && !step()) break;
      run_block(node.body);
    }
  }
  loops_.pop_back();
}

void InterpExec::run_lane_loop(const Node& node, int64_t trips) {
  int lanes = node.stmt->lanes;
  std::vector<uint8_t> active(static_cast<size_t>(lanes), 1);
  lanes_ = lanes;
  active_ = active.data();
  for (int64_t first = 0; first < trips && !stopped_; first += lanes) {
    for (int l = 0; l < lanes; ++l)
      cells_[node.var.at + static_cast<uint32_t>(l)] = static_cast<uint64_t>(first + l);
    active_count_ = activate(active, first, trips);
    if (active_count_ == 0) continue;
    if (node.body.empty() && !step()) break;
    run_block(node.body);
  }
  lanes_ = 0;
  active_ = nullptr;
}

void InterpExec::run_branch(const Node& node) {
  if (node.value.step == 0 || lanes_ == 0) {
    return run_block(cells_[node.value.at] ? node.body : node.otherwise);
  }
  const uint8_t* outer = active_;
  int outer_count = active_count_;
  std::vector<uint8_t> then(static_cast<size_t>(lanes_)), otherwise(then.size());
  int then_count = 0;
  for (int l = 0; l < lanes_; ++l) {
    bool taken = cells_[node.value.at + static_cast<uint32_t>(l)] != 0;
    then[static_cast<size_t>(l)] = outer[l] && taken;
    otherwise[static_cast<size_t>(l)] = outer[l] && !taken;
    then_count += outer[l] && taken;
  }
  auto run = [&](const std::vector<Node>& body, const std::vector<uint8_t>& mask, int count) {
    if (count == 0) return;
    active_ = mask.data();
    active_count_ = count;
    run_block(body);
  };
  run(node.body, then, then_count);
  run(node.otherwise, otherwise, outer_count - then_count);
  active_ = outer;
  active_count_ = outer_count;
}

void InterpExec::run_let(const Node& node) {
  int n = node.var.step == 0 ? 1 : lanes_;
  for (int l = 0; l < n; ++l) {
    cells_[node.var.at + static_cast<uint32_t>(l)] =
        cells_[node.value.at + static_cast<uint32_t>(l * node.value.step)];
  }
}

void InterpExec::run_store(const Node& node) {
  const AccessPlan& plan = program_.accesses[node.access];
  const InterpMemory::View& view = memory_.view(plan.buffer);
  bool masked = node.stmt->mask.valid();
  stored_.clear();
  int n = std::max(1, lanes_);
  for (int l = 0; l < n; ++l) {
    auto lane = static_cast<uint32_t>(l);
    if (!is_active(l)) continue;
    if (masked && !cells_[node.mask.at + lane * static_cast<uint32_t>(node.mask.step)]) continue;
    int64_t at = locate(plan, l, "store");
    if (at < 0) continue;
    uint64_t value = cells_[node.value.at + lane * static_cast<uint32_t>(node.value.step)];
    Hazard found = memory_.store(view, plan.buffer, at, l, value);
    if (found != Hazard::none) hazard(plan, found, at, l, true);
    stored_.push_back(at);
  }
  if (threads_ > 0 && !stored_.empty()) memory_.count_traffic(plan.buffer, stored_);
  if (stored_.size() > 1 && view.lanes == 0) check_collisions(plan);
}

void InterpExec::check_collisions(const AccessPlan& plan) {
  if (std::is_sorted(stored_.begin(), stored_.end(), std::less_equal<>()))
    return;  // strictly rising
  std::sort(stored_.begin(), stored_.end());
  auto twice = std::adjacent_find(stored_.begin(), stored_.end());
  if (twice == stored_.end()) return;
  fault(plan, Fault::collision, 0,
        fmt::format("two lanes store {}{} in one statement", kernel_.buffer(plan.buffer).name,
                    element_text(memory_.view(plan.buffer), *twice)));
}

void InterpExec::run_async_copy(const Node& node) {
  const AccessPlan& to = program_.accesses[node.access];
  const AccessPlan& from = program_.accesses[node.source];
  const InterpMemory::View& target = memory_.view(to.buffer);
  const InterpMemory::View& source = memory_.view(from.buffer);
  int64_t count = node.stmt->count;
  for (int l = 0; l < std::max(1, lanes_); ++l) {
    if (!is_active(l)) continue;
    int64_t first = locate(to, l, "copy", count), read = locate(from, l, "copy", count);
    if (first < 0 || read < 0) continue;
    for (int64_t i = 0; i < count; ++i) {
      Copy copy{node.access, node.source, first + i, read + i, 0, l};
      Hazard found = memory_.load(source, from.buffer, read + i, l, copy.value);
      if (found != Hazard::none) hazard(from, found, read + i, l, false);
      found = memory_.mark_pending(target, first + i, l);
      if (found != Hazard::none) hazard(to, found, first + i, l, true);
      copies_->open.push_back(copy);
    }
  }
}

void InterpExec::run_async_wait(int64_t count) {
  std::deque<std::vector<Copy>>& pending = copies_->pending;
  if (!copies_->open.empty() || !pending.empty()) {
    pending.push_back(std::move(copies_->open));
    copies_->open.clear();
  }
  for (; static_cast<int64_t>(pending.size()) > count; pending.pop_front()) {
    for (const Copy& copy : pending.front()) {
      const AccessPlan& to = program_.accesses[copy.access];
      const AccessPlan& from = program_.accesses[copy.source];
      if (memory_.peek(memory_.view(from.buffer), copy.from) != copy.value) {
        fault(from, Fault::source, 0,
              fmt::format("{}{} changed while its async copy was pending",
                          kernel_.buffer(from.buffer).name,
                          element_text(memory_.view(from.buffer), copy.from)));
      }
      memory_.complete(memory_.view(to.buffer), to.buffer, copy.to, copy.value, copy.lane);
    }
  }
}

void InterpExec::run_instrs(uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    const Instr& in = program_.instrs[i];
    report_.op_counts[static_cast<size_t>(in.op)] += !in.varying   ? 1
                                                     : lanes_ == 0 ? in.n
                                                                   : active_count_;
    uint64_t* dst = cells_ + in.dst;
    const uint64_t* a = cells_ + in.a.at;
    switch (in.kind) {
      case Instr::Kind::floors:
        check_divisor(in);
        [[fallthrough]];
      case Instr::Kind::arithmetic:
        in.function(
            {dst, a, cells_ + in.b.at, cells_ + in.c.at, in.a.step, in.b.step, in.c.step, in.n});
        break;
      case Instr::Kind::load:
        run_load(in);
        break;
      case Instr::Kind::convert:
        for (int l = 0; l < in.n; ++l) dst[l] = convert_bits(in.from, in.to, a[l * in.a.step]);
        break;
      case Instr::Kind::bitcast:
        for (int l = 0; l < in.n; ++l) dst[l] = canonical_bits(in.to, a[l * in.a.step]);
        break;
      case Instr::Kind::lane:
        dst[0] = a[in.imm * in.a.step];
        break;
      case Instr::Kind::shuffle:
        for (int l = 0; l < in.n; ++l) dst[l] = a[(l ^ static_cast<int>(in.imm)) * in.a.step];
        break;
      case Instr::Kind::dot: {
        const MmaDescriptor& mma = mma_table()[static_cast<size_t>(in.imm)];
        for (int l = 0; l < in.n; ++l)
          dst[l] = execute_dot(mma, a[l * in.a.step],
                               cells_[in.b.at + static_cast<uint32_t>(l * in.b.step)],
                               cells_[in.c.at + static_cast<uint32_t>(l * in.c.step)]);
        break;
      }
    }
  }
}

void InterpExec::run_load(const Instr& in) {
  const AccessPlan& plan = program_.accesses[in.access];
  const InterpMemory::View& view = memory_.view(plan.buffer);
  uint64_t* dst = cells_ + in.dst;
  touched_.clear();
  for (int l = 0; l < in.n; ++l) {
    if (in.varying && !is_active(l)) {
      dst[l] = 0;
      continue;
    }
    if (in.guarded && !cells_[in.a.at + static_cast<uint32_t>(l * in.a.step)]) {
      dst[l] = cells_[in.b.at + static_cast<uint32_t>(l * in.b.step)];
      continue;
    }
    int64_t at = locate(plan, l, "read");
    if (at < 0) {
      dst[l] = 0;
      continue;
    }
    const int lane = threads_ > 0 && !in.varying ? InterpClocks::kAllLanes : l;
    Hazard found = memory_.load(view, plan.buffer, at, lane, dst[l]);
    if (found != Hazard::none) hazard(plan, found, at, l, false);
    if (threads_ > 0) touched_.push_back(at);
  }
  count_traffic(plan);
}

void InterpExec::check_divisor(const Instr& in) {
  for (int l = 0; l < in.n; ++l) {
    if (in.varying && !is_active(l)) continue;
    uint64_t divisor = cells_[in.b.at + static_cast<uint32_t>(l * in.b.step)];
    bool positive =
        tensor::is_signed_integer(in.from) ? static_cast<int64_t>(divisor) > 0 : divisor != 0;
    if (positive) continue;
    if (!divided_.insert(stmt_).second) return;
    add_fault(
        fmt::format("{}: {} by a number that is not positive", where(stmt_, l), op_text(in.op)));
  }
}

}  // namespace heddle::kernel
