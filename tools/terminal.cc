#include "terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "api/heddle.h"
#include "base/escape.h"

namespace heddle::tools {
namespace {

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return true;
}

template <int kFile>
ssize_t write_plain(void* /*cookie*/, const char* data, size_t size) {
  return write_all(kFile, escaped({data, size}, "\n\t")) ? static_cast<ssize_t>(size) : 0;
}

template <int kFile>
std::FILE* plain_stream(int mode) {
  cookie_io_functions_t functions{};
  functions.write = write_plain<kFile>;
  std::FILE* stream = ::fopencookie(nullptr, "w", functions);
  if (stream != nullptr) std::setvbuf(stream, nullptr, mode, BUFSIZ);
  return stream;
}

Verbosity chosen = Verbosity::normal;

void print_log(const heddle_log_message* message, void* /*context*/) {
  fmt::print(stderr, "log: {}\n", message->text);
}

std::atomic<bool> interrupted{false};
void interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void show_plain_text() {
  // glibc lets these be assigned.
  const int mode = ::isatty(STDOUT_FILENO) == 1 ? _IOLBF : _IOFBF;
  if (std::FILE* stream = plain_stream<STDOUT_FILENO>(mode)) stdout = stream;
  if (std::FILE* stream = plain_stream<STDERR_FILENO>(_IONBF)) stderr = stream;
}

void set_verbosity(Verbosity verbosity) {
  chosen = verbosity;
  if (verbosity == Verbosity::verbose)
    heddle_status_free(heddle_set_log(print_log, nullptr, HEDDLE_LOG_DEBUG));
}

Verbosity verbosity() { return chosen; }

Progress::Progress() : on_(::isatty(STDERR_FILENO) == 1) {}

bool Progress::is_shown() const { return on_ && verbosity() != Verbosity::quiet; }

void Progress::show(const std::string& text) {
  if (!is_shown()) return;
  // A line that is broken cannot be taken back.
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  const std::string line = escaped(text);
  write_all(STDERR_FILENO, "\r\x1b[K" + line.substr(0, known ? size.ws_col - 1U : 79U));
  drawn_ = true;
}

void Progress::hide() {
  if (drawn_) write_all(STDERR_FILENO, "\r\x1b[K");
  drawn_ = false;
}

std::string Progress::bar(int64_t done, int64_t all) {
  constexpr int64_t kWidth = 30;
  const int64_t full = std::clamp<int64_t>(kWidth * done / std::max<int64_t>(all, 1), 0, kWidth);
  return fmt::format("[{:{}}] {}/{}", std::string(static_cast<size_t>(full), '#'), kWidth, done,
                     all);
}

Interrupt::Interrupt() {
  interrupted = false;
  std::signal(SIGINT, interrupt);
}

Interrupt::~Interrupt() { std::signal(SIGINT, SIG_DFL); }

bool Interrupt::asked() { return interrupted; }

}  // namespace heddle::tools
