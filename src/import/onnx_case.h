// Data for tests of ONNX files besides the model itself: its signature, and values in separate
// files (TensorProto, SequenceProto, OptionalProto), as in ONNX's backend tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"
#include "tensor/vocabulary.h"

namespace heddle::import {

enum class OnnxKind { tensor, sequence, nothing, other };

struct OnnxPort {
  std::string name;
  OnnxKind kind = OnnxKind::tensor;  // for an optional: the kind of its content
  bool optional = false;
};

struct OnnxSignature {
  std::vector<OnnxPort> inputs, outputs;                // inputs: without initialisers
  std::vector<std::pair<std::string, int64_t>> opsets;  // domain ("ai.onnx"), version
  std::vector<std::string> operators;                   // distinct, in order; "domain.Name"
};
Result<OnnxSignature> read_onnx_signature(const std::string& path);

struct OnnxValue {
  OnnxKind kind = OnnxKind::tensor;
  tensor::Literal tensor;
  std::vector<tensor::Literal> elements;  // of a sequence
};
// Reads the value in a file, which has the port's kind. Strings are ids of the vocabulary.
Result<OnnxValue> read_onnx_value(const std::string& path, const OnnxPort& port,
                                  const std::shared_ptr<tensor::Vocabulary>& vocabulary = nullptr);

}  // namespace heddle::import
