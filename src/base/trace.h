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

// start() forgets what was recorded before. At most `kMaxEvents` a thread are kept; later ones are
// counted and named in the file.
inline constexpr int64_t kMaxEvents = 1 << 20;
void start();
void stop();

// An event that was measured elsewhere, on the calling thread's row. `nodes`: the names of the
// model's nodes that it was for, as text.
void add(std::string_view name, int64_t begin_ns, int64_t end_ns, std::string_view detail = {},
         std::string_view nodes = {});
// A number that changes, as a curve of its own.
void add_counter(std::string_view name, int64_t at_ns, int64_t value);

// Names the calling thread's row from its first event on; else it is `thread N`.
void name_thread(std::string name);
// What the calling thread's forks are for: their parts on other threads are events of this name.
// It must live as long as they run. Empty: they leave no events.
void set_work(std::string_view name);
std::string_view work();

// From construction to destruction. `name` and `detail` are copied when the span ends, and only
// where tracing was on when it began: they must live as long as the span.
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
