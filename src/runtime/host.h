// Host functions: code for operators without a kernel (program::HostCall) and for vendor library
// calls (program::LibraryCall).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "program/program.h"
#include "tensor/shape.h"

namespace heddle::runtime {

// Bytes in host memory, row-major and dense unless the shape has a layout; 64-byte aligned if the
// memory is ours, otherwise at least element-aligned. Valid during the call only.
struct HostArgument {
  const tensor::Shape* shape;
  const void* data;
};
struct HostResult {
  const tensor::Shape* shape;
  void* data;  // the function must write all of it
};

// Called once per run. Thread-safe: contexts of one executable call it concurrently.
using HostCallable =
    std::function<Status(std::span<const HostArgument>, std::span<const HostResult>)>;
// Called once per command, when the program is loaded; parses `text`.
using HostFunction = std::function<Result<HostCallable>(const std::string& text)>;
using HostFunctions = std::unordered_map<std::string, HostFunction>;  // by HostCall::function

// One prepared library call. Contexts of one executable use it concurrently.
class LibraryWork {
 public:
  virtual ~LibraryWork() = default;
  virtual int64_t tasks() const = 0;
  // Called before every run. `buffers`: the arguments, then the result; fixed arguments are read
  // the first time only.
  virtual Status prepare(void* const* buffers) = 0;
  // Runs tasks [begin, end); several threads call it concurrently.
  virtual Status run(void* const* buffers, int64_t begin, int64_t end) const = 0;
};
// Called once per command, when the program is loaded. Error: the library is missing, or does not
// support the call.
using LibraryFunction =
    std::function<Result<std::shared_ptr<LibraryWork>>(const program::LibraryCall& call)>;

}  // namespace heddle::runtime
