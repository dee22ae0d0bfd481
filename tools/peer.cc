#include "peer.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/ranges.h>

#include "suggest.h"

extern char** environ;

namespace heddle::tools {

extern const char* const kPeerProgram;  // peer.py

namespace {

constexpr const char* kKinds[] = {"onnxruntime", "openvino", "xla"};  // PEERS of peer.py
constexpr int kAnswerSeconds = 1800;  // a peer that says nothing for so long is given up

void close_if_open(int& file) {
  if (file >= 0) ::close(file);
  file = -1;
}

}  // namespace

std::string Peer::python(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  if (const char* variable = std::getenv("HEDDLE_PEER_PYTHON"); variable && *variable)
    return variable;
  return "python3";
}

Status Peer::check_kind(const std::string& kind) {
  for (const char* known : kKinds)
    if (kind == known) return {};
  return user_error("--vs {}: no such peer; available: {}{}", kind, fmt::join(kKinds, ", "),
                    did_you_mean(kind, {std::begin(kKinds), std::end(kKinds)}));
}

bool Peer::reads(const std::string& kind, std::string_view format) {
  return format == "ONNX" || (kind == "xla" && format != "compiled program");
}

Result<std::unique_ptr<Peer>> Peer::start(const Setup& setup) {
  HEDDLE_RETURN_IF_ERROR(check_kind(setup.kind));
  std::unique_ptr<Peer> peer(new Peer());
  peer->kind_ = setup.kind;
  HEDDLE_RETURN_IF_ERROR(peer->spawn(setup));
  HEDDLE_ASSIGN_OR_RETURN(const std::string answer, peer->read_line());
  constexpr std::string_view kReady = "ready ", kError = "error ";
  if (answer.starts_with(kError))
    return user_error("--vs {}: {}", setup.kind, answer.substr(kError.size()));
  if (!answer.starts_with(kReady))
    return user_error("--vs {}: {} answered '{}'", setup.kind, setup.python, answer);
  peer->name_ = answer.substr(kReady.size());
  return peer;
}

Status Peer::spawn(const Setup& setup) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return machine_error("--vs: no pipe: {}", std::strerror(errno));
  if (::pipe2(out, O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    return machine_error("--vs: no pipe: {}", std::strerror(errno));
  }
  to_child_ = in[1];
  from_child_ = out[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::error_code error;  // only `xla` needs it
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> words = {setup.python,
                                    "-c",
                                    kPeerProgram,
                                    setup.kind,
                                    setup.model,
                                    setup.inputs,
                                    std::to_string(setup.threads),
                                    self};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int failed = ::posix_spawnp(&child_, setup.python.c_str(), &actions, &attributes,
                                    arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  ::close(in[0]);
  ::close(out[1]);
  if (failed == 0) return {};
  child_ = -1;
  return user_error("--vs {}: cannot start {}: {}; name a Python with --peer-python", setup.kind,
                    setup.python, std::strerror(failed));
}

Peer::~Peer() {
  // The end of its input ends it; one that does not listen is stopped.
  close_if_open(to_child_);
  close_if_open(from_child_);
  if (child_ <= 0) return;
  for (int tries = 0; tries < 300; ++tries) {
    if (::waitpid(child_, nullptr, WNOHANG) != 0) return;
    ::usleep(10000);
  }
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

Result<std::string> Peer::read_line() {
  while (true) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd wait{from_child_, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kAnswerSeconds * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return machine_error("--vs {}: no answer for {} s", kind_, kAnswerSeconds);
    char part[4096];
    const ssize_t got = ::read(from_child_, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return user_error("--vs {}: the peer's process ended; see its messages", kind_);
    buffer_.append(part, static_cast<size_t>(got));
  }
}

Status Peer::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(to_child_, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return user_error("--vs {}: the peer's process ended; see its messages", kind_);
    at += static_cast<size_t>(wrote);
  }
  return {};
}

Result<std::vector<double>> Peer::run(int64_t runs) {
  HEDDLE_RETURN_IF_ERROR(write_line(fmt::format("run {}", runs)));
  HEDDLE_ASSIGN_OR_RETURN(const std::string answer, read_line());
  std::istringstream words(answer);
  std::vector<double> times;
  for (double ns; words >> ns;) times.push_back(ns / 1e6);
  if (static_cast<int64_t>(times.size()) != runs)
    return user_error("--vs {}: {} runs were asked for, it answered '{}'", kind_, runs, answer);
  return times;
}

}  // namespace heddle::tools
