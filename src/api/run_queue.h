// Several runs of one program in flight: each is submitted with its own memory and extents, and its
// outputs are handed on as soon as it is done.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/session.h"
#include "runtime/pipeline.h"

namespace heddle::api {

class RunQueue {
 public:
  static constexpr int64_t kMostSlots = 4096;
  enum class Mode { automatic, serial, pipelined };
  // automatic: pipelined where it pays (runtime/pipeline.h), else a run is done when submit()
  // returns. `slots`: runs that may wait in front of each step, at least 1.
  static Result<std::unique_ptr<RunQueue>> make(Program& program, Mode mode, int64_t slots);

  // Memory of the request must stay valid until `done`, which may be called on another thread, with
  // the first error; it may not submit or drain. Runs are done in the order of their submission.
  // Any thread.
  void submit(RunRequest request, std::function<void(const Status&)> done);
  void drain() { pipeline_->drain(); }
  bool is_pipelined() const { return pipeline_->has_threads(); }

 private:
  RunQueue() = default;
  size_t inputs_ = 0, outputs_ = 0;   // of the program
  std::unique_ptr<Context> context_;  // of the pipeline's threads
  std::unique_ptr<runtime::Pipeline> pipeline_;
};

}  // namespace heddle::api
