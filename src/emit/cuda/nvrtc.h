// CUDA C++ text to a cubin, by NVRTC, which is opened at run time: nothing here needs CUDA to
// build. It is looked for where HEDDLE_NVRTC says (a file), in the folders of PyPI's nvidia
// packages below `python_folder`, and by the system's own search.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::emit::cuda {

// What the assembler says of a function.
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
  // Error: it was not found, with the places that were tried.
  static Result<std::shared_ptr<Nvrtc>> open(const std::string& python_folder = {});
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;

  std::string version() const { return version_; }
  // `architecture`: "sm_90". Error: what NVRTC says. Thread-safe.
  Result<Cubin> compile(const std::string& text, const std::string& architecture) const;

 private:
  Nvrtc() = default;
  struct Functions;
  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
  std::string version_;
};

// The lines of ptxas's -v output.
std::vector<FunctionUse> parse_use(const std::string& log);

}  // namespace heddle::emit::cuda
