// Dynamic memory: a run whose temporaries come from a pool. For every block of the program the
// commands that touch it are counted; it is allocated before the first of them and released after
// the last.
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

// Used by one context. The pool keeps its memory from run to run.
class PooledRun {
 public:
  // The arguments must outlive it; the program has pool blocks.
  PooledRun(const Device& device, const program::Program& program);

  // From now on untimed runs put the commands on these streams (the list must have the same ones).
  // A released block is reused directly if its last uses are known to have run, otherwise after
  // events of these commands, which are among last_uses(). If the device has already called back
  // that a command has run, no wait is issued. The choice of memory does not depend on these
  // callbacks.
  void use_streams(program::StreamPlan plan);
  const std::vector<size_t>& last_uses() const { return last_uses_; }

  // Runs all commands of `list`, the program's run section. With `times` as run_timed(). Error: of
  // a command, or no memory for it; all blocks are released in that case, too.
  Status run(CommandList& list, std::span<CommandTime> times);
  // Call when the device has finished all work: the pool may rearrange its blocks.
  void end_run();

  // Allocates and releases as a run does, without executing commands.
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
    int64_t uses = 0;  // number of commands that touch it
    std::vector<Member> members;
    // During a run: the number of uses left, and its address.
    int64_t uses_left = 0;
    char* memory = nullptr;
    Pool::Clock last;  // by stream: the last command that used it
  };
  Pool pool_;
  std::vector<Counted> blocks_;
  std::vector<std::vector<size_t>> touched_;  // by command: sorted blocks
  std::optional<program::StreamPlan> streams_;
  std::vector<size_t> last_uses_;
  // Vector clocks of a run on streams, commands counted from 1: commands that each stream knows to
  // have run, and those known to have run when a command has run.
  bool on_streams_ = false;
  std::vector<Pool::Clock> now_, at_;
  // From callbacks: by stream the last command that has run. Calls of one stream come in order.
  struct Passed {
    std::atomic<int64_t>* passed;
    int64_t command;  // from 1
  };
  static void has_passed(void* passed);
  std::unique_ptr<std::atomic<int64_t>[]> passed_;
  std::vector<Passed> calls_;  // by command; only those of last_uses_ are requested
};

// Peak device memory of runs for temporaries: the plan's bytes, or the pool's peak if memory is
// dynamic; on up to `most_streams` streams, if several pay off.
int64_t pool_peak_bytes(const program::Program& program, int64_t most_streams = 1);

}  // namespace heddle::runtime
