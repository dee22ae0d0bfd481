// A peer of `bench --vs`: another inference engine, run by a Python in a child process (peer.py).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::tools {

class Peer {
 public:
  struct Setup {
    std::string kind;           // "onnxruntime", "openvino", "xla"
    std::string python;         // command
    std::string model, inputs;  // files
    int threads = 1;
  };
  // Returns when the peer has run once. Errors: no such peer, what it needs is missing, what it
  // finds wrong with the model (user).
  static Result<std::unique_ptr<Peer>> start(const Setup& setup);
  ~Peer();
  Peer(const Peer&) = delete;

  const std::string& name() const { return name_; }  // "onnxruntime 1.31.1"
  // Milliseconds of each of `runs` runs.
  Result<std::vector<double>> run(int64_t runs);

  // --peer-python, else HEDDLE_PEER_PYTHON, else python3.
  static std::string python(const std::string& chosen);
  static Status check_kind(const std::string& kind);  // error: lists the known ones
  // Whether it reads models of this format (heddle_model_info::format).
  static bool reads(const std::string& kind, std::string_view format);

 private:
  Peer() = default;
  Status spawn(const Setup& setup);
  Result<std::string> read_line();
  Status write_line(const std::string& line);

  std::string kind_, name_, buffer_;
  pid_t child_ = -1;
  int to_child_ = -1, from_child_ = -1;
};

}  // namespace heddle::tools
