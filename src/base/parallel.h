// The worker pool: one per session. Workers spin during a run and briefly (0.3 ms) after it, then
// they sleep (cpu-codegen §6: fork and join of two spinning threads takes 0.25 us, a futex wake
// 15-36 us).
#pragma once

#include <cstdint>
#include <memory>

namespace heddle {

class Workers {
 public:
  // `threads` >= 1 counts the calling thread.
  explicit Workers(int threads);
  ~Workers();
  Workers(const Workers&) = delete;
  int threads() const;

  // Between begin_run and end_run the workers spin. Calls nest by count.
  void begin_run();
  void end_run();

  // Splits [0, tasks) into `threads` contiguous parts, depending on tasks and threads only, runs
  // function(context, begin, end, worker) on each, and returns when all are done. `worker` is the
  // part's number: the caller also runs parts of late workers, under their numbers. No allocation,
  // no lock. One caller at a time; a concurrent or nested call runs all of its parts itself. Also
  // works outside a run (it then wakes sleepers).
  using Function = void (*)(void* context, int64_t begin, int64_t end, int worker);
  void parallel(int64_t tasks, Function function, void* context);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Cores this process may use: affinity mask and cgroup quota.
int available_cores();

}  // namespace heddle
