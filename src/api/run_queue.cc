#include "api/run_queue.h"

#include "base/parallel.h"

namespace heddle::api {

Result<std::unique_ptr<RunQueue>> RunQueue::make(Program& program, Mode mode, int64_t slots) {
  if (slots < 1 || slots > kMostSlots)
    return user_error("a queue of {} slots: wanted 1 to {}", slots, kMostSlots);
  std::unique_ptr<RunQueue> queue(new RunQueue);
  HEDDLE_ASSIGN_OR_RETURN(queue->context_, program.make_context());
  queue->inputs_ = program.inputs().size();
  queue->outputs_ = program.outputs().size();
  const bool pays = runtime::Pipeline::pays(available_cores());
  const bool threads = mode == Mode::pipelined || (mode == Mode::automatic && pays);
  queue->pipeline_ = std::make_unique<runtime::Pipeline>(static_cast<size_t>(slots), threads);
  return queue;
}

void RunQueue::submit(RunRequest request, std::function<void(const Status&)> done) {
  runtime::Pipeline::Task task;
  if (request.inputs.size() != inputs_ || request.outputs.size() != outputs_)
    task.steps[0] = [this, inputs = request.inputs.size(),
                     outputs = request.outputs.size()]() -> Status {
      return user_error("a run of {} inputs and {} outputs, the program has {} and {}", inputs,
                        outputs, inputs_, outputs_);
    };
  else
    task.steps = context_->steps(std::move(request));
  task.done = std::move(done);
  pipeline_->submit(std::move(task));
}

}  // namespace heddle::api
