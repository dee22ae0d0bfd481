// What CUDA's driver does while a stream is captured, for drivers that stand in for it: calls that
// are put on the stream are kept, calls that would wait or allocate are errors that spoil the
// capture, and a graph runs what was kept.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace heddle {

class Captures {
 public:
  using Call = std::function<int()>;
  using Graph = std::vector<Call>;
  static constexpr int kInvalid = 1, kUnsupported = 900, kInvalidated = 901, kWrongThread = 908;

  static Captures& get() {
    static Captures one;
    return one;
  }

  int begin(void* stream, int mode) {
    const std::lock_guard lock(mutex_);
    if (stream == nullptr || mode != 1 || under_way_.count(stream) != 0) return kInvalid;
    under_way_[stream] = {std::this_thread::get_id(), {}, false};
    return 0;
  }
  int end(void* stream, void** graph) {
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(stream);
    if (found == under_way_.end()) return kInvalid;
    if (found->second.thread != std::this_thread::get_id()) return kWrongThread;
    const bool spoilt = found->second.spoilt;
    *graph = spoilt ? nullptr : new Graph(std::move(found->second.graph));
    under_way_.erase(found);
    return spoilt ? kInvalidated : 0;
  }

  // Runs a call that is put on a stream, or keeps it where a graph may hold it.
  int put(void* stream, bool may_be_kept, Call call) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = under_way_.find(stream);
      if (found != under_way_.end()) {
        found->second.spoilt |= !may_be_kept;
        if (found->second.spoilt) return kUnsupported;
        found->second.graph.push_back(std::move(call));
        return 0;
      }
    }
    return call();
  }

  // Of calls that a thread must not make while it captures: 0, or the error.
  int refuse() { return refuse_where([](const Capture& c) { return c.is_of_this_thread(); }); }
  // Of calls that wait for all streams.
  int refuse_to_all() { return refuse_where([](const Capture&) { return true; }); }
  bool is_captured(void* stream) {
    const std::lock_guard lock(mutex_);
    return under_way_.count(stream) != 0;
  }

  static int run(const Graph& graph) {
    for (const Call& call : graph)
      if (const int code = call()) return code;
    return 0;
  }

 private:
  struct Capture {
    std::thread::id thread;
    Graph graph;
    bool spoilt = false;
    bool is_of_this_thread() const { return thread == std::this_thread::get_id(); }
  };
  template <typename Which>
  int refuse_where(Which&& which) {
    const std::lock_guard lock(mutex_);
    int code = 0;
    for (auto& [stream, capture] : under_way_)
      if (which(capture)) capture.spoilt = true, code = kUnsupported;
    return code;
  }
  std::mutex mutex_;
  std::map<void*, Capture> under_way_;  // by stream
};

}  // namespace heddle
