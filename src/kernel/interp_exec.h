// The interpreter's engine: runs one task after the other.
#pragma once

#include <deque>
#include <unordered_set>

#include "kernel/interp.h"
#include "kernel/interp_memory.h"
#include "kernel/interp_program.h"

namespace heddle::kernel {

inline constexpr size_t kOpCount = 0
#define HEDDLE_KERNEL_OP(...) +1
#include "kernel/ops.def"
    ;

class InterpExec {
 public:
  InterpExec(const Kernel& kernel, InterpProgram program, InterpMemory& memory, size_t max_faults,
             int64_t max_steps = int64_t{1} << 31);

  void run_task(size_t phase, int64_t task);
  bool stopped() const { return stopped_; }  // the limit of steps is reached
  void add_fault(std::string text);
  InterpReport take_report() { return std::move(report_); }

 private:
  // The possible faults of an access, each a bit of AccessPlan::reported.
  enum class Fault : uint8_t {
    bounds,
    unwritten,
    overwritten,
    pending,
    race,
    collision,
    source,
    wait,
    thread_race
  };
  struct Copy {
    uint32_t access, source;  // AccessPlans
    int64_t to, from;         // elements
    uint64_t value;
    int lane;
  };
  // Of a task, or of a subgroup of a block.
  struct Copies {
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> pending;  // closed groups, oldest first
  };

  bool step();  // false: the limit is reached
  void run_block(const std::vector<Node>& nodes);
  void run_node(const Node& node);
  void run_loop(const Node& node);
  void run_lane_loop(const Node& node, int64_t trips);
  void run_branch(const Node& node);
  void run_let(const Node& node);
  void run_store(const Node& node);
  void run_async_copy(const Node& node);
  void run_async_wait(int64_t count);
  void end_copies();
  // interp_fragments.cc
  void run_mma(const Node& node);
  int64_t first_register(const AccessPlan& plan) const;
  void move_fragment(const Node& node);

  // interp_blocks.cc
  void run_threads(const GroupPlan& plan, int threads);
  void enter(size_t subgroup);
  void run_together(const std::vector<Node>& nodes);
  void run_meeting(const Node& node);
  int activate(std::vector<uint8_t>& active, int64_t first, int64_t trips) const;
  void count_traffic(const AccessPlan& plan);

  void run_instrs(uint32_t begin, uint32_t end);
  void run_load(const Instr& instr);
  void check_divisor(const Instr& instr);

  bool is_active(int lane) const { return lanes_ == 0 || active_[lane]; }
  // Row-major element, or -1 after a fault. `count`: elements along the last index.
  int64_t locate(const AccessPlan& plan, int lane, const char* what, int64_t count = 1);
  void hazard(const AccessPlan& plan, Hazard hazard, int64_t at, int lane, bool storing);
  void fault(const AccessPlan& plan, Fault fault, int lane, std::string text);
  std::string where(const Stmt* stmt, int lane) const;
  void check_collisions(const AccessPlan& plan);

  const Kernel& kernel_;
  InterpProgram program_;
  InterpMemory& memory_;
  InterpReport report_;
  size_t max_faults_;
  int64_t max_steps_;
  uint64_t* cells_;
  int64_t steps_ = 0;
  bool stopped_ = false;

  std::unordered_set<const Stmt*> divided_;  // floor divisions reported

  // The current position.
  size_t phase_ = 0, group_ = 0;
  int64_t task_ = 0;
  int threads_ = 0;  // of the running block; 0: a task without threads
  const Stmt* stmt_ = nullptr;
  std::vector<VarId> loops_;         // bound grid and loop variables, outermost first
  int lanes_ = 0;                    // of the running lane loop; 0: none
  const uint8_t* active_ = nullptr;  // by lane
  int active_count_ = 0;

  std::vector<int64_t> stored_;   // elements of the running store
  std::vector<int64_t> touched_;  // elements of the running load
  Copies task_copies_;
  Copies* copies_ = &task_copies_;
  std::vector<Copies> subgroup_copies_;
  std::vector<std::vector<uint64_t>> subgroup_cells_;
};

}  // namespace heddle::kernel
