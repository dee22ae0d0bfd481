// One test of ONNX's backend tests: a model with inputs and the outputs it should give.
#pragma once

#include <string>
#include <vector>

#include "api/session.h"

namespace heddle::tools {

struct OnnxCase {
  std::string name;                    // its folder, or file, below the one that was searched
  std::string model;                   // path
  std::vector<std::string> data_sets;  // folders with input_N.pb and output_N.pb
  std::vector<std::string> light;      // or only outputs: the input is then i / n of n elements
  double rtol = 1e-3, atol = 1e-7;     // data.json may have others
};

// Folders with a model.onnx and test_data_set_*, and models NAME.onnx with NAME_output_N.pb beside
// them, in order of their names.
Result<std::vector<OnnxCase>> find_onnx_cases(const std::string& folder);

// All that running it may read: the model, what lies beside it, its data.
std::vector<std::string> files_of(const OnnxCase& test);

struct OnnxOutcome {
  std::string outcome;  // "pass", "runs" (drawn at random), "mismatch", "refused", "unreadable",
                        // "too big", "no data"
  std::string reason;
  std::string op;     // of a model of one operator; else "graph"
  std::string opset;  // "13", "ai.onnx.ml 3"
  bool late = false;  // values decide shapes (api/late.h)
};

// Imports, compiles and runs the case with each of its data sets. Compared by ONNX's rule: type,
// shape, |a - b| <= atol + rtol |b|; bf16 with an rtol of 2^-6 at least.
OnnxOutcome run_onnx_case(const OnnxCase& test, const api::CompileOptions& options,
                          double max_work);

}  // namespace heddle::tools
