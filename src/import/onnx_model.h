// The steps of importing an ONNX model, in execution order: the file's declarations (ModelFacts),
// the check that all of it is supported (preflight), the inputs' shapes (bind_inputs), the graph
// (import_graph). All throw Failure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "import/onnx.h"
#include "import/onnx_op.h"
#include "import/onnx_proto.h"
#include "import/onnx_support.h"
#include "import/onnx_tensor.h"

namespace heddle::import {

constexpr int64_t kOldestOpset = 1, kNewestOpset = 28;

using Opsets = std::map<std::string_view, int64_t>;  // by domain ("" is ai.onnx)
// Domain, name, overload.
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

struct ModelFacts {
  const proto::Model* model = nullptr;
  Opsets opsets;
  std::map<FunctionKey, const proto::Function*> functions;
  std::map<const proto::Function*, Opsets> function_opsets;
  const proto::Function* find_function(const proto::Node& node) const;
};

// Checks the opsets: ai.onnx must have one, in the supported range.
ModelFacts read_facts(const proto::Model& model);

// All parts that cannot be imported; does not set `refused`. Recursive functions are an error.
SupportReport support_of(const ModelFacts& facts);
// A single error that lists every operator that cannot be imported; also stores them in
// `unsupported` (may be null). Recursive functions are an error too.
void preflight(const ModelFacts& facts, std::vector<Unsupported>* unsupported = nullptr);

struct Input {
  std::string_view name;
  Shape shape;  // of a tensor
  Value::Kind kind = Value::Kind::tensor;
  std::vector<Shape> elements;  // of a sequence
  bool text = false;            // strings
};

// The graph's inputs without initialisers, with static shapes. Adds unbound dimensions to `result`,
// with notes.
std::vector<Input> bind_inputs(const proto::Graph& graph, const Options& options, Imported& result);

// Fills `result`.
void import_graph(const ModelFacts& facts, const std::vector<Input>& inputs, const Options& options,
                  TensorSource& source, Imported& result);

}  // namespace heddle::import
