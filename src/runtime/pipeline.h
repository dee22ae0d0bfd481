// Pipeline: runs in three steps, each step on a thread of its own, so that the next run is inferred
// and resized while one is launched.
//
//   infer:  are the extents allowed, what is the bucket, how large are outputs
//   resize: the bucket's program and memory are there, inputs lie as it wants them
//   launch: it runs, outputs are the caller's
//
// A run of a static program has only the last. All go through all queues, so that they are done in
// the order in which they were submitted.
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
    std::string name;  // of its errors
    // One after another, each after the same step of the task before; null: nothing to do. After an
    // error the later ones are left out.
    std::array<std::function<Status()>, kSteps> steps;
    // Last, on the thread of the last step, with the first error. It must not submit or drain.
    std::function<void(const Status&)> done;
  };

  // Whether more threads pay on so many cores. On a CPU launching is computing, on all cores: a
  // thread that prepares the next run shares one with the workers. With two or fewer it takes from
  // them as much as it gives.
  static bool pays(int cores) { return cores > 2; }

  // `slots`: of each queue; who submits waits while they are full. Without `threads` a task is done
  // when submit() returns.
  Pipeline(size_t slots, bool threads);
  ~Pipeline();  // drains
  Pipeline(const Pipeline&) = delete;

  bool has_threads() const { return !workers_.empty(); }
  void submit(Task task);  // any thread
  void drain();            // until all that was submitted so far is done; any thread

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
  std::mutex mutex_;  // of the counts
  std::condition_variable finished_;
  int64_t submitted_count_ = 0, finished_count_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace heddle::runtime
