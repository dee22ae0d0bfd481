#include "base/trace.h"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace heddle::trace {
namespace internal {
std::atomic<bool> recording{false};
}

namespace {

struct Event {
  int64_t begin_ns, end_ns;
  int thread;
  std::string name, detail, nodes;
  int64_t counter = -1;  // a sample with this name, not a span
};

struct ThreadEvents {
  std::mutex mutex;  // the owning thread against readers: rarely contended
  int thread = 0;
  std::string name;
  int64_t dropped = 0;
  std::vector<Event> events;
};

// Lists outlive their threads, so that events of ended workers are written, too.
struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadEvents>> threads;
};

Registry& registry() {
  static auto* registry = new Registry;  // never destroyed: threads may end after main
  return *registry;
}

thread_local std::string own_name;
thread_local std::string_view own_work;

ThreadEvents& own_events() {
  thread_local std::shared_ptr<ThreadEvents> own = [] {
    auto made = std::make_shared<ThreadEvents>();
    std::lock_guard lock(registry().mutex);
    made->thread = static_cast<int>(registry().threads.size());
    made->name = own_name.empty() ? fmt::format("thread {}", made->thread) : own_name;
    registry().threads.push_back(made);
    return made;
  }();
  return *own;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

void append_name(std::string& out, std::string_view kind, int thread, std::string_view name) {
  out += fmt::format(
      "{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"{}\",\"args\":{{\"name\":", thread, kind);
  append_quoted(out, name);
  out += "}},\n";
}

void append_event(std::string& out, const Event& event, int64_t origin_ns) {
  if (event.counter >= 0) {
    out += "{\"ph\":\"C\",\"pid\":1,\"name\":";
    append_quoted(out, event.name);
    out += fmt::format(",\"ts\":{:.3f},\"args\":{{\"bytes\":{}}}}}",
                       static_cast<double>(event.begin_ns - origin_ns) / 1e3, event.counter);
    return;
  }
  out += "{\"ph\":\"X\",\"pid\":1,\"name\":";
  append_quoted(out, event.name);
  // The format requires microseconds.
  out += fmt::format(",\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}", event.thread,
                     static_cast<double>(event.begin_ns - origin_ns) / 1e3,
                     static_cast<double>(event.end_ns - event.begin_ns) / 1e3);
  std::string_view separator = ",\"args\":{";
  for (const auto& [key, value] : {std::pair("detail", &event.detail), {"nodes", &event.nodes}}) {
    if (value->empty()) continue;
    out += fmt::format("{}\"{}\":", std::exchange(separator, ","), key);
    append_quoted(out, *value);
  }
  if (separator == ",") out += '}';
  out += '}';
}

}  // namespace

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1'000'000'000) + time.tv_nsec;
}

void start() {
  std::lock_guard lock(registry().mutex);
  for (const auto& thread : registry().threads) {
    std::lock_guard thread_lock(thread->mutex);
    thread->events.clear();
    thread->dropped = 0;
  }
  internal::recording.store(true);
}

void stop() { internal::recording.store(false); }

namespace {

void keep(Event event) {
  ThreadEvents& own = own_events();
  std::lock_guard lock(own.mutex);
  if (static_cast<int64_t>(own.events.size()) >= kMaxEvents) {
    ++own.dropped;
    return;
  }
  event.thread = own.thread;
  own.events.push_back(std::move(event));
}

}  // namespace

void add(std::string_view name, int64_t begin_ns, int64_t end_ns, std::string_view detail,
         std::string_view nodes) {
  keep({begin_ns, end_ns, 0, std::string(name), std::string(detail), std::string(nodes)});
}

void add_counter(std::string_view name, int64_t at_ns, int64_t value) {
  keep({at_ns, at_ns, 0, std::string(name), "", "", value});
}

void name_thread(std::string name) { own_name = std::move(name); }
void set_work(std::string_view name) { own_work = name; }
std::string_view work() { return own_work; }

void Span::begin(std::string_view name, std::string_view detail) {
  name_ = name;
  detail_ = detail;
  begin_ns_ = now_ns();
}

void Span::end() { add(name_, begin_ns_, now_ns(), detail_); }

std::string to_json() {
  std::vector<Event> events;
  std::vector<std::pair<int, std::string>> rows;
  int64_t dropped = 0;
  {
    std::lock_guard lock(registry().mutex);
    for (const auto& thread : registry().threads) {
      std::lock_guard thread_lock(thread->mutex);
      events.insert(events.end(), thread->events.begin(), thread->events.end());
      dropped += thread->dropped;
      if (!thread->events.empty()) rows.emplace_back(thread->thread, thread->name);
    }
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    // Of two events with equal begin the longer one is the outer one.
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  const int64_t origin_ns = events.empty() ? 0 : events.front().begin_ns;
  std::string out = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped_events\":\"" +
                    std::to_string(dropped) + "\"},\"traceEvents\":[";
  if (!events.empty()) out += '\n';
  if (!events.empty()) append_name(out, "process_name", 0, "heddle");
  for (const auto& [thread, name] : rows) append_name(out, "thread_name", thread, name);
  for (size_t i = 0; i < events.size(); ++i) {
    if (i > 0) out += ",\n";
    append_event(out, events[i], origin_ns);
  }
  out += "\n]}\n";
  return out;
}

Status write(const std::string& path) {
  const std::string text = to_json();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return machine_error("{}: cannot write the trace: {}", path, strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed)
    return machine_error("{}: cannot write the trace: {}", path, strerror(errno));
  return {};
}

}  // namespace heddle::trace
