// What CUDA's driver does while streams are captured, for drivers that stand in for it: calls that
// are put on such a stream are kept, calls that would wait or allocate are errors that spoil the
// capture, and a stream that waits for an event of the capture joins it. A graph runs what was kept
// in the most hostile order that streams and events allow: the last call first.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace heddle {

class Captures {
 public:
  using Call = std::function<int()>;
  struct Node {
    Call call;
    std::set<size_t> behind;  // nodes
  };
  using Graph = std::vector<Node>;
  static constexpr int kInvalid = 1, kUnsupported = 900, kInvalidated = 901, kUnjoined = 904,
                       kIsolation = 905, kWrongThread = 908;

  static Captures& get() {
    static Captures one;
    return one;
  }

  int begin(void* stream, int mode) {
    const std::lock_guard lock(mutex_);
    if (stream == nullptr || mode != 1 || of_stream(stream) != nullptr) return kInvalid;
    Capture& made = under_way_[stream];
    made.thread = std::this_thread::get_id();
    made.last[stream] = {};
    return 0;
  }
  int end(void* stream, void** graph) {
    const std::lock_guard lock(mutex_);
    *graph = nullptr;
    const auto found = under_way_.find(stream);
    if (found == under_way_.end()) return kInvalid;
    if (found->second.thread != std::this_thread::get_id()) return kWrongThread;
    Capture capture = std::move(found->second);
    under_way_.erase(found);
    std::erase_if(events_, [&](const auto& one) { return one.second.origin == stream; });
    if (capture.spoilt) return kInvalidated;
    if (reached(capture.graph, capture.last[stream]) < capture.graph.size()) return kUnjoined;
    *graph = new Graph(std::move(capture.graph));
    return 0;
  }

  // Runs a call that is put on a stream, or keeps it where a graph may hold it.
  int put(void* stream, bool may_be_kept, Call call) {
    {
      const std::lock_guard lock(mutex_);
      if (Capture* capture = of_stream(stream)) {
        capture->spoilt |= !may_be_kept;
        if (capture->spoilt) return kUnsupported;
        std::set<size_t>& last = capture->last[stream];
        capture->graph.push_back({std::move(call), std::move(last)});
        last = {capture->graph.size() - 1};
        return 0;
      }
    }
    return call();
  }
  int record(void* event, void* stream) {
    const std::lock_guard lock(mutex_);
    events_.erase(event);
    if (Capture* capture = of_stream(stream))
      events_[event] = {origin_of(*capture), capture->last[stream]};
    return 0;
  }
  int wait(void* stream, void* event) {
    const std::lock_guard lock(mutex_);
    Capture* capture = of_stream(stream);
    const auto found = events_.find(event);
    if (found == events_.end()) {  // of no capture
      if (capture != nullptr) capture->spoilt = true;
      return capture != nullptr ? kIsolation : 0;
    }
    Capture& origin = under_way_.at(found->second.origin);
    if (capture != nullptr && capture != &origin) return capture->spoilt = true, kIsolation;
    origin.last[stream].insert(found->second.last.begin(), found->second.last.end());
    return 0;
  }

  // Of calls that a thread must not make while it captures: 0, or the error.
  int refuse() {
    return refuse_where([](const Capture& c) { return c.thread == std::this_thread::get_id(); });
  }
  // Of calls that wait for all streams.
  int refuse_to_all() {
    return refuse_where([](const Capture&) { return true; });
  }
  bool is_captured(void* stream) {
    const std::lock_guard lock(mutex_);
    return of_stream(stream) != nullptr;
  }

  static int run(const Graph& graph) {
    std::vector<bool> done(graph.size());
    for (size_t count = 0; count < graph.size(); ++count) {
      size_t at = graph.size();
      do --at;
      while (done[at] || !std::all_of(graph[at].behind.begin(), graph[at].behind.end(),
                                      [&](size_t other) { return done[other]; }));
      done[at] = true;
      if (const int code = graph[at].call()) return code;
    }
    return 0;
  }

 private:
  struct Capture {
    std::thread::id thread;
    Graph graph;
    std::map<void*, std::set<size_t>> last;  // by stream: what its next call is behind
    bool spoilt = false;
  };
  struct Event {
    void* origin;  // stream that the capture began with
    std::set<size_t> last;
  };
  Capture* of_stream(void* stream) {
    for (auto& [origin, capture] : under_way_)
      if (capture.last.count(stream) != 0) return &capture;
    return nullptr;
  }
  void* origin_of(const Capture& capture) const {
    for (const auto& [origin, one] : under_way_)
      if (&one == &capture) return origin;
    return nullptr;
  }
  // How many nodes these are, and those that they are behind.
  static size_t reached(const Graph& graph, const std::set<size_t>& last) {
    std::set<size_t> all = last;
    for (size_t at = graph.size(); at-- > 0;)
      if (all.count(at) != 0) all.insert(graph[at].behind.begin(), graph[at].behind.end());
    return all.size();
  }
  template <typename Which>
  int refuse_where(Which&& which) {
    const std::lock_guard lock(mutex_);
    int code = 0;
    for (auto& [stream, capture] : under_way_)
      if (which(capture)) capture.spoilt = true, code = kUnsupported;
    return code;
  }
  std::mutex mutex_;
  std::map<void*, Capture> under_way_;  // by the stream that it began with
  std::map<void*, Event> events_;       // of captures under way
};

}  // namespace heddle
