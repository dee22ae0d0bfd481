// What of an ONNX model cannot be imported, told before any work: all of it, of all kinds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/onnx.h"

namespace heddle::import {

// One kind of fault, wherever the model has it.
struct Unsupported {
  std::string kind;                 // "operator", "opset", "input", "initialiser", "element type"
  std::string what;                 // "Foo", "com.microsoft.Bar", "input 'x'"
  std::string detail;               // why not; empty: it is not known here
  int64_t opset = 0;                // of an operator; 0: its domain is not imported
  int64_t count = 0;                // places
  std::vector<std::string> places;  // descriptions of the first ones
  std::string way_out;
};

struct SupportReport {
  int64_t nodes = 0;      // those of branches and of called functions included, each once
  int64_t operators = 0;  // different ones
  std::vector<Unsupported> faults;
  // Where there are none: what the import itself says against the model; empty: nothing.
  std::string refused;
  // Where shapes depend on values, which a run brings: the first value that is asked for.
  std::string late;
  bool supported() const { return faults.empty() && refused.empty(); }
};

// Errors (user): not an ONNX model, or a damaged one.
Result<SupportReport> check_support(const std::string& path, const Options& options = {});

}  // namespace heddle::import
