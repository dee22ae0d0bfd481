// Reports all unsupported parts of an ONNX model, of all kinds, before any work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/onnx.h"

namespace heddle::import {

// One kind of fault, with all its places in the model.
struct Unsupported {
  std::string kind;                 // "operator", "opset", "input", "initialiser", "element type"
  std::string what;                 // "Foo", "com.microsoft.Bar", "input 'x'"
  std::string detail;               // reason; empty: it is unknown here
  int64_t opset = 0;                // for an operator; 0: its domain is not imported
  int64_t count = 0;                // places
  std::vector<std::string> places;  // descriptions of the first ones
  std::string way_out;
};

struct SupportReport {
  int64_t nodes = 0;      // including branches and called functions, each once
  int64_t operators = 0;  // distinct
  std::vector<Unsupported> faults;
  // If there are none: the import's own error, if any; else empty.
  std::string refused;
  // If shapes depend on run-time values: the first value needed.
  std::string late;
  bool supported() const { return faults.empty() && refused.empty(); }
};

// Errors (user): not an ONNX model, or damaged.
Result<SupportReport> check_support(const std::string& path, const Options& options = {});

}  // namespace heddle::import
