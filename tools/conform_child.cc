#include "conform_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>

#include "process_text.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// A child is replaced after so many pieces: what they leave behind is freed with it.
constexpr size_t kPiecesPerChild = 64;

void write_record(int file, const ordered_json& record) {
  const std::string text =
      record.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(file, text.data() + at, text.size() - at);
    if (wrote <= 0) ::_exit(3);
    at += static_cast<size_t>(wrote);
  }
}

// One child process and what it has said.
struct Child {
  pid_t process = -1;
  int records = -1, messages = -1;

  Status start(size_t first, size_t end, const ChildLimits& limits,
               const std::function<void(size_t, const Report&)>& work);
  // The next line, without its end; nothing at the end, or when the time is over.
  bool next_line(std::string& line, Clock::time_point deadline, bool& timed_out);
  std::string buffer;
};

void run_pieces(size_t first, size_t end, int to,
                const std::function<void(size_t, const Report&)>& work) {
  for (size_t piece = first; piece < end; ++piece) {
    write_record(to, {{"begin", piece}});
    try {
      work(piece, [&](const ordered_json& record) { write_record(to, record); });
    } catch (const std::bad_alloc&) {
      write_record(to, {{"outcome", "refused"}, {"reason", "out of memory"}});
    }
    write_record(to, {{"end", piece}});
  }
}

Status Child::start(size_t first, size_t end, const ChildLimits& limits,
                    const std::function<void(size_t, const Report&)>& work) {
  int ends[2];
  messages = ::memfd_create("messages", MFD_CLOEXEC);
  if (messages < 0 || ::pipe2(ends, O_CLOEXEC) != 0) return machine_error("conform: no pipe");
  std::fflush(nullptr);
  process = ::fork();
  if (process < 0) return machine_error("conform: cannot start a process");
  if (process == 0) {
    ::close(ends[0]);
    ::dup2(messages, 2);
    const rlimit memory{static_cast<rlim_t>(limits.bytes), static_cast<rlim_t>(limits.bytes)};
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setrlimit(RLIMIT_CORE, &no_core);
    run_pieces(first, end, ends[1], work);
    ::_exit(0);
  }
  ::close(ends[1]);
  records = ends[0];
  return {};
}

bool Child::next_line(std::string& line, Clock::time_point deadline, bool& timed_out) {
  while (true) {
    if (const size_t end = buffer.find('\n'); end != std::string::npos) {
      line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      return true;
    }
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    pollfd wait{records, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    timed_out = ready <= 0;
    if (timed_out) return false;
    char part[4096];
    const ssize_t got = ::read(records, part, sizeof part);
    if (got <= 0) return false;
    buffer.append(part, static_cast<size_t>(got));
  }
}

}  // namespace

Status for_each_in_child(size_t count, const ChildLimits& limits,
                         const std::function<void(size_t, const Report&)>& work,
                         const std::function<void(const PieceResult&)>& done) {
  for (size_t next = 0; next < count;) {
    Child child;
    const size_t end = std::min(count, next + kPiecesPerChild);
    HEDDLE_RETURN_IF_ERROR(child.start(next, end, limits, work));
    PieceResult result{next, {}};
    bool timed_out = false;
    std::string line;
    const auto limit =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
    Clock::time_point deadline = Clock::now() + limit;
    while (next < end && child.next_line(line, deadline, timed_out)) {
      const ordered_json record = ordered_json::parse(line, nullptr, false);
      if (record.is_discarded()) continue;
      if (record.contains("begin")) {
        deadline = Clock::now() + limit;
        result = {next, {}};
      } else if (record.contains("end")) {
        done(result);
        ++next;
      } else {
        result.records.push_back(record);
      }
    }
    if (next < end) ::kill(child.process, SIGKILL);
    ::close(child.records);
    int status = 0;
    ::waitpid(child.process, &status, 0);
    if (next < end) {
      const std::string why = timed_out ? fmt::format("timed out after {} s", limits.seconds)
                                        : last_words(text_of_file(child.messages));
      result.piece = next;
      result.records.push_back({{"outcome", timed_out ? "timeout" : "crash"}, {"reason", why}});
      done(result);
      ++next;
    }
    ::close(child.messages);
  }
  return {};
}

}  // namespace heddle::tools
