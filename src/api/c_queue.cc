// Queues of runs.
#include <condition_variable>
#include <mutex>
#include <optional>

#include "api/c_handles.h"
#include "api/c_status.h"
#include "api/run_queue.h"

struct heddle_queue {
  std::shared_ptr<const heddle::api::Program> program;
  std::unique_ptr<heddle::api::RunQueue> queue;
};

struct heddle_run {
  // Shared with the run, which may end after the handle was freed.
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

using api::answered;
using api::Call;
using api::guarded;
using api::told;
using heddle::Result;

Result<api::RunRequest> request_of(const Call& call, const api::Program& program,
                                   const heddle_run_request& c) {
  constexpr int64_t kMostDims = 1 << 20;
  const int64_t inputs = std::ssize(program.inputs()), outputs = std::ssize(program.outputs());
  HEDDLE_RETURN_IF_ERROR(call.in_range("request->input_count", c.input_count, inputs, inputs));
  HEDDLE_RETURN_IF_ERROR(call.in_range("request->output_count", c.output_count, outputs, outputs));
  HEDDLE_RETURN_IF_ERROR(call.in_range("request->dim_count", c.dim_count, 0, kMostDims));
  const auto size = [](int64_t count) { return static_cast<uint64_t>(count); };
  HEDDLE_RETURN_IF_ERROR(call.array("request->inputs", c.inputs, size(inputs)));
  HEDDLE_RETURN_IF_ERROR(call.array("request->outputs", c.outputs, size(outputs)));
  HEDDLE_RETURN_IF_ERROR(call.array("request->dims", c.dims, size(c.dim_count)));
  HEDDLE_RETURN_IF_ERROR(api::memory_of(call, "request->inputs", program.inputs(), c.inputs));
  HEDDLE_RETURN_IF_ERROR(api::memory_of(call, "request->outputs", program.outputs(), c.outputs));
  api::RunRequest request;
  request.inputs.assign(c.inputs, c.inputs + inputs);
  request.outputs.assign(c.outputs, c.outputs + outputs);
  for (int64_t i = 0; i < c.dim_count; ++i) {
    if (c.dims[i].name == nullptr)
      return call.wrong(fmt::format("request->dims[{}].name", i), "NULL",
                        "the name of a dimension");
    request.extents.emplace_back(c.dims[i].name, c.dims[i].size);
  }
  return request;
}

}  // namespace

extern "C" {

heddle_status* heddle_queue_create(heddle_program* program, const heddle_queue_options* options,
                                   heddle_queue** queue) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"program", program}, {"queue", queue}}));
    HEDDLE_ASSIGN_OR_RETURN(const heddle_queue_options c, call.read("options", options));
    HEDDLE_RETURN_IF_ERROR(
        call.in_range("options->mode", c.mode, HEDDLE_QUEUE_AUTOMATIC, HEDDLE_QUEUE_PIPELINED));
    HEDDLE_RETURN_IF_ERROR(call.in_range("options->slots", c.slots, 0, api::RunQueue::kMostSlots));
    constexpr int64_t kSlots = 4;
    HEDDLE_ASSIGN_OR_RETURN(
        auto made, api::RunQueue::make(*program->program, static_cast<api::RunQueue::Mode>(c.mode),
                                       c.slots == 0 ? kSlots : c.slots));
    *queue = new heddle_queue{program->program, std::move(made)};
    return {};
  });
}

void heddle_queue_free(heddle_queue* queue) { delete queue; }

int32_t heddle_queue_is_pipelined(const heddle_queue* queue) {
  return answered<int32_t>(__func__, 0, [&](const Call& call) -> Result<int32_t> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"queue", queue}}));
    return queue->queue->is_pipelined();
  });
}

heddle_status* heddle_queue_submit(heddle_queue* queue, const heddle_run_request* request,
                                   heddle_run** run) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"queue", queue}, {"request", request}}));
    HEDDLE_ASSIGN_OR_RETURN(const heddle_run_request c, call.read("request", request));
    HEDDLE_ASSIGN_OR_RETURN(api::RunRequest asked, request_of(call, *queue->program, c));
    auto state = std::make_shared<heddle_run::State>();
    auto handle = std::make_unique<heddle_run>(heddle_run{state});
    auto done = [state, tell = c.done, context = c.context](const Status& status) {
      if (tell != nullptr) {
        heddle_status* reported = status ? nullptr : api::make_status(status.error());
        tell(reported, context);
        heddle_status_free(reported);
      }
      const std::lock_guard lock(state->mutex);
      state->status = status;
      state->changed.notify_all();
    };
    queue->queue->submit(std::move(asked), std::move(done));
    if (run != nullptr) *run = handle.release();
    return {};
  });
}

void heddle_queue_drain(heddle_queue* queue) {
  told(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"queue", queue}}));
    queue->queue->drain();
    return {};
  });
}

heddle_status* heddle_run_wait(heddle_run* run) {
  return guarded(__func__, [&](const Call& call) -> Status {
    HEDDLE_RETURN_IF_ERROR(call.given({{"run", run}}));
    std::unique_lock lock(run->state->mutex);
    run->state->changed.wait(lock, [&] { return run->state->status.has_value(); });
    return *run->state->status;
  });
}

int32_t heddle_run_is_done(const heddle_run* run) {
  return answered<int32_t>(__func__, 0, [&](const Call& call) -> Result<int32_t> {
    HEDDLE_RETURN_IF_ERROR(call.given({{"run", run}}));
    const std::lock_guard lock(run->state->mutex);
    return run->state->status.has_value();
  });
}

void heddle_run_free(heddle_run* run) { delete run; }

}  // extern "C"
