#include "trial.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "process_text.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Words that hold names, paths or numbers of a model say nothing of the kind of error.
std::string words_of(const std::string& message) {
  std::istringstream words(message);
  std::string result;
  for (std::string word; words >> word;) {
    const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalpha(c) || std::strchr(",;:'()-", c) != nullptr;
    });
    if (plain) result += (result.empty() ? "" : " ") + word;
  }
  return result;
}

std::string line_that_begins(const std::string& text, const char* begin) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(begin)) return line;
  return {};
}

// "heddle bug: FILE:LINE: …" without what follows.
std::string place_of_bug(const std::string& line) {
  size_t end = line.find(": check failed");
  return line.substr(0, end);
}

Failure wrong_values(const TrialOutcome& outcome) {
  Failure failure{Failure::Kind::wrong, "finite", "the comparison failed"};
  const auto json = nlohmann::json::parse(outcome.output, nullptr, false);
  if (json.is_discarded() || !json.contains("outputs")) return failure;
  std::string all;
  for (const auto& output : json["outputs"]) {
    if (output.value("equal", true)) continue;
    const bool finite = !output.contains("worst") || output["worst"]["got"].is_number();
    failure.what = finite ? "finite" : "not finite";
    all += fmt::format("{}{} {}: {} elements differ", all.empty() ? "" : "; ",
                       output.value("name", "?"), output.value("shape", "?"),
                       output.value("mismatches", int64_t{0}));
  }
  if (!all.empty()) failure.message = all;
  return failure;
}

}  // namespace

const char* to_string(Failure::Kind kind) {
  constexpr const char* kNames[] = {"none", "wrong", "error", "crash", "hang", "slow", "test"};
  return kNames[static_cast<size_t>(kind)];
}

Result<TrialOutcome> run_trial(const std::vector<std::string>& command, const TrialLimits& limits) {
  const int output = ::memfd_create("output", MFD_CLOEXEC);
  const int messages = ::memfd_create("messages", MFD_CLOEXEC);
  if (output < 0 || messages < 0) return machine_error("reduce: no memory for a child's output");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return machine_error("reduce: cannot start a process: {}", std::strerror(errno));
  if (child == 0) {
    ::setpgid(0, 0);
    ::dup2(output, 1);
    ::dup2(messages, 2);
    const rlimit memory{static_cast<rlim_t>(limits.bytes), static_cast<rlim_t>(limits.bytes)};
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::setpgid(child, child);  // whoever comes first
  TrialOutcome outcome;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(limits.seconds));
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    outcome.timed_out = Clock::now() > deadline;
    if (outcome.timed_out) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.output = text_of_file(output);
  outcome.messages = text_of_file(messages);
  ::close(output);
  ::close(messages);
  return outcome;
}

Failure failure_of(const TrialOutcome& outcome) {
  using Kind = Failure::Kind;
  if (outcome.timed_out) return {Kind::hang, "", "it timed out"};
  if (outcome.status == 0) return {};
  if (outcome.status == 1) return wrong_values(outcome);
  if (outcome.status == 2 || outcome.status == 3) {
    std::string line = line_that_begins(outcome.messages, "error: ");
    return {Kind::error, fmt::format("{} {}", outcome.status, words_of(line)),
            line.substr(std::min(line.size(), std::strlen("error: ")))};
  }
  const std::string words = last_words(outcome.messages);
  if (words.starts_with("heddle bug")) return {Kind::crash, place_of_bug(words), words};
  std::string how = outcome.signal != 0
                        ? fmt::format("signal {} ({})", outcome.signal, strsignal(outcome.signal))
                        : fmt::format("status {}", outcome.status);
  return {Kind::crash, how, words.empty() ? how : how + ": " + words};
}

}  // namespace heddle::tools
