// The thread on which runs that take long happen, behind the call that asked for them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace heddle::pjrt {

// Tasks are done one after the other, in the order in which they were added. The thread starts with
// the first of them. Any thread may add.
class Worker {
 public:
  using Task = std::function<void()>;  // throws nothing, and waits for no thread that adds tasks

  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { stop(); }

  // Whether this thread may as well hand over its work: nothing is waiting that another one added.
  // Several threads that call run their programs beside each other.
  bool suits_this_thread() const;
  // Waits where many tasks wait already: their results' memory is taken. `placed` is called once
  // the task has its place in the order, before it begins.
  void add(Task task, const Task& placed);
  // Until what was added so far is done.
  void drain();
  // The same, and ends the thread; what is added afterwards is done at once, without a place.
  void stop();

 private:
  static constexpr size_t kMostWaiting = 32;
  void work();
  void start();

  mutable std::mutex mutex_;
  std::condition_variable added_, done_;
  std::deque<Task> tasks_;  // the first is being done
  std::thread::id owner_;   // who added the last one
  std::thread thread_;
  bool is_stopped_ = false;
};

}  // namespace heddle::pjrt
