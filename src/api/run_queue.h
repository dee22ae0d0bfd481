// Several runs of one program in flight: each is submitted with its own memory and extents, and its
// outputs are delivered as soon as it is done.
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
  // automatic: pipelined if that pays off (runtime/pipeline.h), otherwise a run is done when
  // submit() returns. `slots`: runs that may wait before each step, at least 1.
  static Result<std::unique_ptr<RunQueue>> make(Program& program, Mode mode, int64_t slots);

  // Memory of the request must stay valid until `done` is called, possibly on another thread, with
  // the first error; it must not submit or drain. Runs are done in the order of submission. Any
  // thread may call.
  void submit(RunRequest request, std::function<void(const Status&)> done);
  void drain() { pipeline_->drain(); }
  bool is_pipelined() const { return pipeline_->has_threads(); }

 private:
  RunQueue() = default;
  size_t inputs_ = 0, outputs_ = 0;   // counts of the program
  std::unique_ptr<Context> context_;  // used by the pipeline's threads
  std::unique_ptr<runtime::Pipeline> pipeline_;
};

}  // namespace heddle::api
