// A command in a process of its own, with limits, and the way in which it failed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::tools {

struct TrialLimits {
  double seconds = 60;
  int64_t bytes = int64_t{16} << 30;  // of its address space
};

struct TrialOutcome {
  int status = -1;  // its exit status; -1 where a signal ended it
  int signal = 0;
  bool timed_out = false;
  std::string output, messages;  // standard output and error
};

// Runs command[0] (a path, or a name to be found) to its end, or kills it and what it started.
// Error (of the machine): no process. A command that cannot be run exits with 127.
Result<TrialOutcome> run_trial(const std::vector<std::string>& command, const TrialLimits& limits);

struct Failure {
  enum class Kind : uint8_t {
    none,
    wrong,  // status 1: the comparison failed
    error,  // status 2 or 3
    crash,  // a signal, or any other status
    hang,   // the time was not enough
    slow,   // slower than it should be
    test,   // the user's command says so
  };
  Kind kind = Kind::none;
  // What tells failures of a kind apart: place of a failed check, words of an error, whether wrong
  // numbers are finite. No names and no numbers of the model.
  std::string what;
  std::string message;  // what was said, in a line

  bool operator==(const Failure& other) const { return kind == other.kind && what == other.what; }
};
const char* to_string(Failure::Kind kind);

// Of `heddle check … --json -`.
Failure failure_of(const TrialOutcome& outcome);

}  // namespace heddle::tools
