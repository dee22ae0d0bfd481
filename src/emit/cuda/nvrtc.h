// CUDA C++ text to a cubin, by NVRTC, which is opened at run time: nothing here needs CUDA to
// build. It is searched for in HEDDLE_NVRTC (a file or a folder), the nvidia packages of
// VIRTUAL_ENV and of the python3 on PATH, /usr/local/cuda*, and the loader's own path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::emit::cuda {

// The assembler's report on a function.
struct FunctionUse {
  std::string function;
  int registers = -1;
  int64_t stack_bytes = -1, spill_store_bytes = -1, spill_load_bytes = -1, shared_bytes = 0;
};

struct Cubin {
  std::vector<uint8_t> code;  // an ELF object
  std::vector<FunctionUse> functions;
  std::string log;
};

class Nvrtc {
 public:
  // `environment`: a Python environment that comes before VIRTUAL_ENV. Error (machine): it was not
  // found, with all places that were tried.
  static Result<std::shared_ptr<Nvrtc>> open(const std::string& environment = {});
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;

  std::string version() const { return version_; }
  std::string path() const { return path_; }  // of the library
  // `architecture`: "sm_90". Error: NVRTC's message. Thread-safe.
  Result<Cubin> compile(const std::string& text, const std::string& architecture) const;

 private:
  Nvrtc() = default;
  struct Functions;
  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
  std::string version_, path_;
};

// Parses ptxas's -v output.
std::vector<FunctionUse> parse_use(const std::string& log);

}  // namespace heddle::emit::cuda
