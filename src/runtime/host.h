// Host functions: what does the operators that have no kernel (program::HostCall).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/error.h"
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

}  // namespace heddle::runtime
