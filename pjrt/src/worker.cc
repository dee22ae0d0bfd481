#include "worker.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace heddle::pjrt {
namespace {

// Clients that are still there when the process ends: a run must not meet libraries that are gone.
class Running {
 public:
  static Running& all() {
    static auto* const running = new Running;  // outlives what is destroyed at the end
    return *running;
  }
  void add(Worker* worker) {
    static const int registered = std::atexit([] { all().stop(); });
    (void)registered;
    const std::lock_guard lock(mutex_);
    workers_.push_back(worker);
  }
  void remove(Worker* worker) {
    const std::lock_guard lock(mutex_);
    std::erase(workers_, worker);
  }

 private:
  void stop() {
    std::vector<Worker*> workers;
    {
      const std::lock_guard lock(mutex_);
      workers = workers_;
    }
    for (Worker* worker : workers) worker->stop();
  }
  std::mutex mutex_;
  std::vector<Worker*> workers_;
};

}  // namespace

bool Worker::suits_this_thread() const {
  const std::lock_guard lock(mutex_);
  return !is_stopped_ && (tasks_.empty() || owner_ == std::this_thread::get_id());
}

void Worker::add(Task task, const Task& placed) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return tasks_.size() < kMostWaiting; });
  if (is_stopped_) {
    lock.unlock();
    return task();
  }
  if (!thread_.joinable()) start();
  owner_ = std::this_thread::get_id();
  placed();
  tasks_.push_back(std::move(task));
  added_.notify_one();
}

void Worker::start() {
  Running::all().add(this);
  thread_ = std::thread([this] { work(); });
}

void Worker::drain() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return tasks_.empty(); });
}

void Worker::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    added_.notify_all();
    if (!thread_.joinable()) return;
  }
  thread_.join();
  Running::all().remove(this);
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    added_.wait(lock, [this] { return is_stopped_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    {
      const Task task = std::move(tasks_.front());
      lock.unlock();
      task();
    }  // what it holds is given back without the lock
    lock.lock();
    tasks_.pop_front();
    done_.notify_all();
  }
}

}  // namespace heddle::pjrt
