// Trace events: named spans of time, written as Chrome/Perfetto JSON. Off by default; a span then
// costs one branch. Times are nanoseconds of the monotonic clock. Thread-safe: every thread records
// into a list of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace heddle::trace {

namespace internal {
extern std::atomic<bool> recording;
}

inline bool recording() { return internal::recording.load(std::memory_order_relaxed); }
int64_t now_ns();

// start() discards earlier events. At most `kMaxEvents` per thread are kept; later ones are
// counted, and the file states their number.
inline constexpr int64_t kMaxEvents = 1 << 20;
void start();
void stop();

// An event measured elsewhere, on the calling thread's row. `nodes`: text with the names of the
// model nodes that it belongs to.
void add(std::string_view name, int64_t begin_ns, int64_t end_ns, std::string_view detail = {},
         std::string_view nodes = {});
// A sample of a number, shown as a separate curve.
void add_counter(std::string_view name, int64_t at_ns, int64_t value);

// Names the calling thread's row from its first event on; otherwise it is `thread N`.
void name_thread(std::string name);
// Names the work of the calling thread's forks: their parts on other threads are events of this
// name. `name` must outlive them. Empty: forks leave no events.
void set_work(std::string_view name);
std::string_view work();

// An event from construction to destruction. `name` and `detail` must outlive the span: they are
// copied at its end, if tracing was on at its begin.
class Span {
 public:
  explicit Span(std::string_view name, std::string_view detail = {}) {
    if (__builtin_expect(recording(), 0)) begin(name, detail);
  }
  ~Span() {
    if (__builtin_expect(begin_ns_ >= 0, 0)) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  void begin(std::string_view name, std::string_view detail);
  void end();
  int64_t begin_ns_ = -1;
  std::string_view name_, detail_;
};

// All events recorded so far, by begin time.
std::string to_json();
// Errors: machine (cannot write).
Status write(const std::string& path);

}  // namespace heddle::trace
