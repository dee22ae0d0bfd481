// Queues of runs.
#include <condition_variable>
#include <mutex>
#include <optional>

#include "api/c_handles.h"
#include "api/c_status.h"
#include "api/run_queue.h"

struct heddle_queue {
  std::unique_ptr<heddle::api::RunQueue> queue;
};

struct heddle_run {
  // Shared with the run, which may be done after the handle is gone.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<heddle::Status> status;
  };
  std::shared_ptr<State> state;
};

using heddle::Status;
namespace api = heddle::api;

namespace {

api::RunRequest request_of(const heddle_run_request& c) {
  api::RunRequest request;
  if (c.input_count > 0) request.inputs.assign(c.inputs, c.inputs + c.input_count);
  if (c.output_count > 0) request.outputs.assign(c.outputs, c.outputs + c.output_count);
  for (int64_t i = 0; i < c.dim_count; ++i)
    request.extents.emplace_back(c.dims[i].name, c.dims[i].size);
  return request;
}

}  // namespace

extern "C" {

heddle_status* heddle_queue_create(heddle_program* program, const heddle_queue_options* options,
                                   heddle_queue** queue) {
  return api::guarded([&]() -> Status {
    const heddle_queue_options c = api::read_struct(options);
    if (c.mode < HEDDLE_QUEUE_AUTOMATIC || c.mode > HEDDLE_QUEUE_PIPELINED)
      return heddle::user_error("a queue of mode {}: there are 0, 1 and 2", c.mode);
    constexpr int64_t kSlots = 4;
    HEDDLE_ASSIGN_OR_RETURN(
        auto made, api::RunQueue::make(*program->program, static_cast<api::RunQueue::Mode>(c.mode),
                                       c.slots == 0 ? kSlots : c.slots));
    *queue = new heddle_queue{std::move(made)};
    return {};
  });
}

void heddle_queue_free(heddle_queue* queue) { delete queue; }

int32_t heddle_queue_is_pipelined(const heddle_queue* queue) {
  return queue->queue->is_pipelined();
}

heddle_status* heddle_queue_submit(heddle_queue* queue, const heddle_run_request* request,
                                   heddle_run** run) {
  return api::guarded([&]() -> Status {
    const heddle_run_request c = api::read_struct(request);
    auto state = std::make_shared<heddle_run::State>();
    auto handle = std::make_unique<heddle_run>(heddle_run{state});
    auto done = [state, tell = c.done, context = c.context](const Status& status) {
      if (tell != nullptr) {
        heddle_status* told = status ? nullptr : api::make_status(status.error());
        tell(told, context);
        heddle_status_free(told);
      }
      const std::lock_guard lock(state->mutex);
      state->status = status;
      state->changed.notify_all();
    };
    queue->queue->submit(request_of(c), std::move(done));
    if (run != nullptr) *run = handle.release();
    return {};
  });
}

void heddle_queue_drain(heddle_queue* queue) { queue->queue->drain(); }

heddle_status* heddle_run_wait(heddle_run* run) {
  return api::guarded([&]() -> Status {
    std::unique_lock lock(run->state->mutex);
    run->state->changed.wait(lock, [&] { return run->state->status.has_value(); });
    return *run->state->status;
  });
}

int32_t heddle_run_is_done(const heddle_run* run) {
  const std::lock_guard lock(run->state->mutex);
  return run->state->status.has_value();
}

void heddle_run_free(heddle_run* run) { delete run; }

}  // extern "C"
