// Dynamic memory: a run whose temporaries come from a pool. Every block of the program counts the
// commands that touch it; it is taken when the first of them runs and given back behind the last.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.h"
#include "runtime/command_list.h"
#include "runtime/pool.h"

namespace heddle::runtime {

// Of one context. The pool keeps its memory from run to run.
class PooledRun {
 public:
  // Both must outlive it; the program has pool blocks.
  PooledRun(const Device& device, const program::Program& program);

  // All commands of `list`, which is the program's run. With `times` as run_timed(). Error: of a
  // command, or no memory for it; everything is given back then too.
  Status run(CommandList& list, std::span<CommandTime> times);
  // When the device has done all work: the pool may rearrange what it holds.
  void end_run() { pool_.consolidate(); }

  // Takes and gives back as a run does, without one.
  Status rehearse();

  PoolNumbers numbers() const { return pool_.numbers(); }

 private:
  Status before(size_t command, CommandList* list);
  void after(size_t command);
  void give_all_back();

  struct Member {
    program::BufferId buffer;
    int64_t offset_bytes = 0;  // in its block
  };
  struct Counted {
    int64_t bytes = 0;
    int64_t uses = 0;  // commands that touch it
    std::vector<Member> members;
    // Of the run: those to come, and where it lies.
    int64_t uses_left = 0;
    char* memory = nullptr;
  };
  Pool pool_;
  std::vector<Counted> blocks_;
  std::vector<std::vector<size_t>> touched_;  // by command: blocks, in their order
};

// What runs take from a device at most for temporaries: the plan's bytes, or the pool's where
// memory is dynamic.
int64_t pool_peak_bytes(const program::Program& program);

}  // namespace heddle::runtime
