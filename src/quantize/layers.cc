#include "quantize/layers.h"

#include <algorithm>

namespace heddle::quantize {

using import::OnnxEdit;
using import::OnnxNode;

namespace {

constexpr int64_t kLeastElems = 64;  // with fewer weights, scales do not pay off
constexpr int64_t kLeastTable = int64_t{1} << 14;
constexpr int64_t kLeastBlockRows = 32;

int64_t number(const OnnxNode& node, const char* name, int64_t otherwise) {
  const auto found = node.ints.find(name);
  return found == node.ints.end() ? otherwise : found->second;
}

bool is_one(const OnnxNode& node, const char* name) {
  const auto found = node.floats.find(name);
  return found == node.floats.end() || found->second == 1;
}

int64_t elements(const std::vector<int64_t>& dims) {
  int64_t elems = 1;
  for (int64_t extent : dims) elems *= extent;
  return elems;
}

// An f32 initialiser of at least `least` elements that no nested graph reads.
bool has_weights(const OnnxEdit& model, const std::string& name, size_t rank, int64_t least) {
  return model.is_initializer(name) && model.is_f32(name) && !model.is_pinned(name) &&
         (rank == 0 || model.dims_of(name).size() == rank) &&
         elements(model.dims_of(name)) >= least;
}

// The result of a convolution, or of its activation if that is the only reader.
std::string behind(const OnnxEdit& model, const Readers& readers, const std::string& value) {
  const auto reader = only_reader(model, readers, value);
  if (!reader) return value;
  const OnnxNode& node = model.nodes()[*reader];
  const bool activation = node.op_type == "Relu" || node.op_type == "Clip" ||
                          node.op_type == "LeakyRelu" || node.op_type == "HardSwish";
  return activation && node.inputs[0] == value ? node.outputs[0] : value;
}

std::optional<Layer> layer_of(const OnnxEdit& model, const Readers& readers, size_t place) {
  const OnnxNode& node = model.nodes()[place];
  if (!node.domain.empty() && node.domain != "ai.onnx") return {};
  if (node.inputs.size() < 2 || node.outputs.empty()) return {};
  Layer layer;
  layer.node = place;
  layer.op_type = node.op_type;
  layer.name = node.name.empty() ? node.outputs[0] : node.name;
  layer.input = node.inputs[0];
  layer.weights = node.inputs[1];
  if (node.op_type == "Conv") {
    if (!has_weights(model, layer.weights, 0, kLeastElems) ||
        model.dims_of(layer.weights).size() < 3)
      return {};
    layer.groups = number(node, "group", 1);
    layer.output = behind(model, readers, node.outputs[0]);
  } else if (node.op_type == "MatMul") {
    if (!has_weights(model, layer.weights, 2, kLeastElems)) return {};
    layer.kind = Kind::product;
    layer.axis = 1;
    layer.blocks = model.dims_of(layer.weights)[0] >= kLeastBlockRows;
  } else if (node.op_type == "Gemm") {
    if (!has_weights(model, layer.weights, 2, kLeastElems) || number(node, "transA", 0) != 0 ||
        !is_one(node, "alpha") || !is_one(node, "beta"))
      return {};
    layer.kind = Kind::product;
    layer.axis = number(node, "transB", 0) != 0 ? 0 : 1;
    layer.blocks =
        model.dims_of(layer.weights)[static_cast<size_t>(1 - layer.axis)] >= kLeastBlockRows;
  } else if (node.op_type == "Gather") {
    layer.input.clear();
    layer.weights = node.inputs[0];
    if (number(node, "axis", 0) != 0 || !has_weights(model, layer.weights, 2, kLeastTable))
      return {};
    layer.kind = Kind::table;
  } else {
    return {};
  }
  if (layer.kind != Kind::table && model.is_initializer(layer.input)) return {};
  if (layer.kind != Kind::table && node.inputs.size() > 2 && !node.inputs[2].empty())
    layer.bias = node.inputs[2];
  layer.weight_elems = elements(model.dims_of(layer.weights));
  return layer;
}

}  // namespace

Readers readers_of(const OnnxEdit& model) {
  Readers readers;
  for (size_t n = 0; n < model.nodes().size(); ++n)
    for (const std::string& name : model.nodes()[n].inputs)
      if (!name.empty()) readers[name].push_back(n);
  return readers;
}

std::optional<size_t> only_reader(const OnnxEdit& model, const Readers& readers,
                                  const std::string& value) {
  const auto found = readers.find(value);
  const std::vector<std::string> outputs = model.outputs();
  if (found == readers.end() || found->second.size() != 1 || model.is_pinned(value) ||
      std::find(outputs.begin(), outputs.end(), value) != outputs.end())
    return {};
  return found->second[0];
}

Status check_float(const OnnxEdit& model, bool by_channel) {
  for (const OnnxNode& node : model.nodes())
    for (const char* type : {"QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul",
                             "MatMulInteger", "ConvInteger", "MatMulNBits"})
      if (node.op_type == type)
        return user_error("has {} in it: it is quantised already; wanted a float model", type);
  constexpr int64_t kOpset = 13;
  if (by_channel && model.opset() < kOpset)
    return user_error(
        "opset {}: scales by channel need {}; convert the model (onnx's "
        "version_converter) or use --weights int4",
        model.opset(), kOpset);
  return {};
}

std::vector<Layer> find_layers(const OnnxEdit& model, bool product_outputs) {
  const Readers readers = readers_of(model);
  std::vector<Layer> layers;
  for (size_t n = 0; n < model.nodes().size(); ++n)
    if (auto layer = layer_of(model, readers, n)) {
      if (product_outputs && layer->kind == Kind::product)
        layer->output = model.nodes()[n].outputs[0];
      layers.push_back(std::move(*layer));
    }
  return layers;
}

}  // namespace heddle::quantize
