// Finds the parts of an ONNX graph to quantise: products by constant weights, and lookup tables.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/onnx_edit.h"

namespace heddle::quantize {

enum class Kind : uint8_t { conv, product, table };

struct Layer {
  Kind kind = Kind::conv;
  size_t node = 0;   // index in the graph
  std::string name;  // readable: the node's, or its output's
  std::string op_type;
  std::string input;    // the activation; empty for a table
  std::string weights;  // an f32 initialiser
  std::string bias;     // an initialiser, or empty
  std::string output;   // quantised as well (after an activation); or empty
  int64_t axis = 0;     // output channels, in the weights
  int64_t groups = 1;   // if a convolution
  int64_t weight_elems = 0;
  bool blocks = false;  // MatMulNBits can hold the weights
};

// Errors (user): the model is already quantised; `by_channel`: its opset has no scales by channel.
Status check_float(const import::OnnxEdit& model, bool by_channel);

// In the order of the graph. `product_outputs`: outputs of MatMul and Gemm are quantised, too.
std::vector<Layer> find_layers(const import::OnnxEdit& model, bool product_outputs = false);

// By value of the main graph: the nodes that read it.
using Readers = std::map<std::string, std::vector<size_t>>;
Readers readers_of(const import::OnnxEdit& model);
// The node that reads a value, if there is exactly one and the value is not an output of the model.
std::optional<size_t> only_reader(const import::OnnxEdit& model, const Readers& readers,
                                  const std::string& value);

}  // namespace heddle::quantize
