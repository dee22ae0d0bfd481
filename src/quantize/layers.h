// What of an ONNX graph is quantised: products by constant weights, and tables that are looked up.
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
  size_t node = 0;   // its place in the graph
  std::string name;  // for people: the node's, or its output's
  std::string op_type;
  std::string input;    // the activation; empty for a table
  std::string weights;  // an f32 initialiser
  std::string bias;     // an initialiser, or empty
  std::string output;   // what is quantised behind it too (behind its activation); or empty
  int64_t axis = 0;     // of the weights: their output channels
  int64_t groups = 1;   // of a convolution
  int64_t weight_elems = 0;
  bool blocks = false;  // the weights can be those of MatMulNBits
};

// Errors (user): it is quantised already; `by_channel`: its opset has no scales by channel.
Status check_float(const import::OnnxEdit& model, bool by_channel);

// In the order of the graph. `product_outputs`: MatMul and Gemm have outputs that are quantised
// too.
std::vector<Layer> find_layers(const import::OnnxEdit& model, bool product_outputs = false);

// Readers of a value in the main graph, by node.
using Readers = std::map<std::string, std::vector<size_t>>;
Readers readers_of(const import::OnnxEdit& model);
// The one node that reads a value, where there is one only and it is no output of the model.
std::optional<size_t> only_reader(const import::OnnxEdit& model, const Readers& readers,
                                  const std::string& value);

}  // namespace heddle::quantize
