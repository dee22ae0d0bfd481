// What is shown: text without control characters, progress, and the end that the user asks for by
// Ctrl-C.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace heddle::tools {

// How much is said beside results and errors: --quiet, nothing, --verbose. Set once, before a
// command runs; `verbose` also writes the library's log to standard error.
enum class Verbosity { quiet, normal, verbose };
void set_verbosity(Verbosity verbosity);
Verbosity verbosity();

// A line on standard error that is neither a result nor an error; not with --quiet.
template <typename... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) {
  if (verbosity() == Verbosity::quiet) return;
  fmt::print(stderr, "{}\n", fmt::format(format, std::forward<Args>(args)...));
}

// From here on all that goes to standard output and standard error through stdio has its control
// characters (line ends and tabs aside) written as \xNN: names and strings of a file must not
// command the terminal. At the begin of main().
void show_plain_text();

// A line on standard error that says how far a command is; there only where that is a terminal, and
// not with --quiet.
class Progress {
 public:
  Progress();
  ~Progress() { hide(); }
  Progress(const Progress&) = delete;

  bool is_shown() const;
  void show(const std::string& text);  // in place of what stands there
  void hide();
  // "[#####     ] 3/7": 30 columns of it.
  static std::string bar(int64_t done, int64_t all);

 private:
  bool on_ = false, drawn_ = false;
};

// While it lives, the first Ctrl-C is noted and nothing else happens; the second ends the process.
// One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  static bool asked();
};

}  // namespace heddle::tools
