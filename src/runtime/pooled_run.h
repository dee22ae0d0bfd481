// Dynamic memory: a run whose temporaries come from a pool. Every block of the program counts the
// commands that touch it; it is taken when the first of them runs and given back behind the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "program/program.h"
#include "program/streams.h"
#include "runtime/command_list.h"
#include "runtime/pool.h"

namespace heddle::runtime {

// Of one context. The pool keeps its memory from run to run.
class PooledRun {
 public:
  // Both must outlive it; the program has pool blocks.
  PooledRun(const Device& device, const program::Program& program);

  // From here on runs that are not timed put the commands on these streams (the list has them,
  // too): a block that was given back is taken again where it is known to be over, or behind events
  // of the commands that used it last, which are among last_uses(): none, where the device has
  // called that they have run. Which memory is taken does not depend on these calls.
  void use_streams(program::StreamPlan plan);
  const std::vector<size_t>& last_uses() const { return last_uses_; }

  // All commands of `list`, which is the program's run. With `times` as run_timed(). Error: of a
  // command, or no memory for it; everything is given back then too.
  Status run(CommandList& list, std::span<CommandTime> times);
  // When the device has done all work: the pool may rearrange what it holds.
  void end_run();

  // Takes and gives back as a run does, without one.
  Status rehearse();

  PoolNumbers numbers() const { return pool_.numbers(); }

 private:
  Status walk(CommandList* list, std::span<CommandTime> times);
  Status before(size_t command, CommandList* list);
  Status take(size_t block, size_t command, CommandList* list);
  Status after(size_t command, CommandList* list);
  void begin_on_stream(size_t command);
  Status end_on_stream(size_t command, CommandList* list);
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
    Pool::Clock last;  // by stream: the commands that used it
  };
  Pool pool_;
  std::vector<Counted> blocks_;
  std::vector<std::vector<size_t>> touched_;  // by command: blocks, in their order
  std::optional<program::StreamPlan> streams_;
  std::vector<size_t> last_uses_;
  // Vector clocks of a run on streams, commands counted from 1: what each stream knows to have run,
  // and what is known to have run when a command has.
  bool on_streams_ = false;
  std::vector<Pool::Clock> now_, at_;
  // What the device has called about: by stream the last command that has run. Calls of a stream
  // come in their order.
  struct Passed {
    std::atomic<int64_t>* passed;
    int64_t command;  // from 1
  };
  static void has_passed(void* passed);
  std::unique_ptr<std::atomic<int64_t>[]> passed_;
  std::vector<Passed> calls_;  // by command; those of last_uses_ are made
};

// What runs take from a device at most for temporaries: the plan's bytes, or the pool's where
// memory is dynamic. On so many streams, if they pay.
int64_t pool_peak_bytes(const program::Program& program, int64_t most_streams = 1);

}  // namespace heddle::runtime
