#include "runtime/pipeline.h"

#include <exception>
#include <new>

namespace heddle::runtime {

Pipeline::Pipeline(size_t slots, bool threads) {
  if (!threads) return;
  for (auto& queue : queues_) queue = std::make_unique<Queue>(slots);
  for (size_t step = 0; step < kSteps; ++step) workers_.emplace_back([this, step] { work(step); });
}

Pipeline::~Pipeline() {
  if (!has_threads()) return;
  queues_[0]->push(nullptr);
  for (std::thread& worker : workers_) worker.join();
}

void Pipeline::run_step(Moving& moving, size_t step) {
  if (!moving.status || !moving.task.steps[step]) return;
  Status status;
  try {
    status = moving.task.steps[step]();
  } catch (const std::bad_alloc&) {
    status = error_of(ErrorKind::memory, "out of memory");
  } catch (const std::exception& error) {
    status = machine_error("a bug in heddle: {}", error.what());
  }
  if (!status && !moving.task.name.empty()) status = error_in(moving.task.name, status.error());
  moving.status = std::move(status);
}

void Pipeline::finish(const Moving& moving) {
  if (moving.task.done) moving.task.done(moving.status);
  const std::lock_guard lock(mutex_);
  ++finished_count_;
  finished_.notify_all();
}

void Pipeline::work(size_t step) {
  constexpr size_t kMost = 16;
  std::array<std::unique_ptr<Moving>, kMost> batch;
  for (;;) {
    const size_t count = queues_[step]->pop(batch.data(), kMost);
    for (size_t i = 0; i < count; ++i) {
      if (batch[i]) run_step(*batch[i], step);
      if (batch[i] && step + 1 == kSteps) finish(*batch[i]);
      const bool end = batch[i] == nullptr;
      if (step + 1 < kSteps)
        queues_[step + 1]->push(std::move(batch[i]));
      else
        batch[i].reset();
      if (end) return;
    }
  }
}

void Pipeline::submit(Task task) {
  auto moving = std::make_unique<Moving>(Moving{std::move(task), {}});
  const std::lock_guard one_producer(submit_mutex_);
  {
    const std::lock_guard lock(mutex_);
    ++submitted_count_;
  }
  if (has_threads()) return queues_[0]->push(std::move(moving));
  for (size_t step = 0; step < kSteps; ++step) run_step(*moving, step);
  finish(*moving);
}

void Pipeline::drain() {
  std::unique_lock lock(mutex_);
  const int64_t wanted = submitted_count_;
  finished_.wait(lock, [&] { return finished_count_ >= wanted; });
}

}  // namespace heddle::runtime
