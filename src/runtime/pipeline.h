// Pipeline: runs in three steps, each on its own thread, so that the next run is inferred and
// resized while the current one is launched.
//
//   infer:  checks the extents, chooses the bucket, computes the sizes of outputs
//   resize: gets the bucket's program and memory, brings inputs into the layout that it needs
//   launch: runs it, delivers the outputs
//
// A run of a static program has only the last step. All runs pass through all queues, so that they
// complete in the order in which they were submitted.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "runtime/spsc_queue.h"

namespace heddle::runtime {

class Pipeline {
 public:
  static constexpr size_t kSteps = 3;
  struct Task {
    std::string name;  // prefix of its errors
    // One after another, each after the same step of the previous task; null: nothing to do. After
    // an error the remaining steps are skipped.
    std::array<std::function<Status()>, kSteps> steps;
    // Called last, on the thread of the last step, with the first error. It must not submit or
    // drain.
    std::function<void(const Status&)> done;
  };

  // Whether extra threads pay off with this many cores. On a CPU a launch computes on all cores, so
  // a thread that prepares the next run shares one with the workers. With two cores or fewer it
  // takes as much from them as it gains.
  static bool pays(int cores) { return cores > 2; }

  // `slots`: of each queue; submit() waits while it is full. Without `threads` a task is complete
  // when submit() returns.
  Pipeline(size_t slots, bool threads);
  ~Pipeline();  // drains
  Pipeline(const Pipeline&) = delete;

  bool has_threads() const { return !workers_.empty(); }
  void submit(Task task);  // any thread
  void drain();            // until everything submitted so far is complete; any thread

 private:
  struct Moving {
    Task task;
    Status status;
  };
  using Queue = SpscQueue<std::unique_ptr<Moving>>;  // null: the end

  static void run_step(Moving& moving, size_t step);
  void finish(const Moving& moving);
  void work(size_t step);

  std::array<std::unique_ptr<Queue>, kSteps> queues_;
  std::mutex submit_mutex_;
  std::mutex mutex_;  // protects the counts
  std::condition_variable finished_;
  int64_t submitted_count_ = 0, finished_count_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace heddle::runtime
