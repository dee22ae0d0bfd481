// Host functions: what does the operators that have no kernel (program::HostCall), and what a
// vendor library does (program::LibraryCall).
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

// Bytes in host memory, row-major and dense unless the shape has a layout; 64-byte aligned where
// they are bound by us, element-aligned at least. They live for the call only.
struct HostArgument {
  const tensor::Shape* shape;
  const void* data;
};
struct HostResult {
  const tensor::Shape* shape;
  void* data;  // to be written whole
};

// Called once a run. Thread-safe: contexts of one executable call it side by side.
using HostCallable =
    std::function<Status(std::span<const HostArgument>, std::span<const HostResult>)>;
// Called once a command, when the program is loaded: parses `text`.
using HostFunction = std::function<Result<HostCallable>(const std::string& text)>;
using HostFunctions = std::unordered_map<std::string, HostFunction>;  // by HostCall::function

// One library call, made ready. Contexts of one executable use it side by side.
class LibraryWork {
 public:
  virtual ~LibraryWork() = default;
  virtual int64_t tasks() const = 0;
  // `buffers`: the arguments, then the result. Before every run; fixed arguments are read the first
  // time only.
  virtual Status prepare(void* const* buffers) = 0;
  // Tasks [begin, end), by several threads at once.
  virtual Status run(void* const* buffers, int64_t begin, int64_t end) const = 0;
};
// Called once a command, when the program is loaded. Error: the library is not here, or cannot.
using LibraryFunction =
    std::function<Result<std::shared_ptr<LibraryWork>>(const program::LibraryCall& call)>;

}  // namespace heddle::runtime
