#include "quantize/fold.h"

#include <algorithm>

namespace heddle::quantize {

using import::OnnxEdit;
using import::OnnxNode;

namespace {

constexpr int kMostDepth = 12;

bool is_one_of(const OnnxNode& node, std::initializer_list<const char*> types) {
  return std::any_of(types.begin(), types.end(),
                     [&](const char* type) { return node.op_type == type; });
}

class Folder {
 public:
  Folder(const OnnxEdit& model, const Readers& readers, int64_t channels)
      : model_(model), readers_(readers), channels_(channels) {
    for (size_t n = 0; n < model.nodes().size(); ++n)
      if (!model.nodes()[n].outputs.empty()) makers_.emplace(model.nodes()[n].outputs[0], n);
  }

  // Divides the value. If it returns false the additions to places() must be dropped. `whole`: the
  // value's last dimension is known to be the channels; otherwise it may be a broadcast one.
  bool divide(const std::string& value, bool whole = true, int depth = 0) {
    const auto maker = makers_.find(value);
    if (maker == makers_.end() || depth > kMostDepth) return false;
    const OnnxNode& node = model_.nodes()[maker->second];
    const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : ""; };
    if (is_one_of(node, {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"}))
      return row(input(1)) && (input(2).empty() || row(input(2)));
    if (is_one_of(node, {"Relu", "LeakyRelu", "Identity", "Dropout"}) ||
        (whole && node.op_type == "Reshape"))
      return only_reader(model_, readers_, input(0)) && divide(input(0), whole, depth + 1);
    if (is_one_of(node, {"Add", "Sub"}))
      return operand(input(0), depth) && operand(input(1), depth);
    if (node.op_type == "Mul") return either(node, depth);
    if (node.op_type == "Div") return row(input(1), true) || operand(input(0), depth);
    if (node.op_type == "MatMul") return columns(input(1), 1);
    if (node.op_type == "Gemm") {
      const auto turned = node.ints.find("transB");
      return columns(input(1), turned != node.ints.end() && turned->second != 0 ? 0 : 1) &&
             (input(2).empty() || row(input(2)));
    }
    return false;
  }

  std::vector<FoldPlace>& places() { return places_; }

 private:
  // One of the two factors, preferably a constant.
  bool either(const OnnxNode& node, int depth) {
    if (row(node.inputs[0]) || row(node.inputs[1])) return true;
    const size_t before = places_.size();
    for (const std::string& factor : {node.inputs[0], node.inputs[1]}) {
      if (operand(factor, depth)) return true;
      places_.resize(before);
    }
    return false;
  }

  // A constant, or a value that only this node reads.
  bool operand(const std::string& value, int depth) {
    return row(value) || (only_reader(model_, readers_, value) && divide(value, false, depth + 1));
  }

  // A constant with one number per channel.
  bool row(const std::string& name, bool multiply = false) {
    if (!is_own(model_, readers_, name)) return false;
    const std::vector<int64_t> dims = model_.dims_of(name);
    if (dims.empty() || dims.back() != channels_ ||
        std::any_of(dims.begin(), dims.end() - 1, [](int64_t extent) { return extent != 1; }))
      return false;
    places_.push_back({name, static_cast<int64_t>(dims.size()) - 1, multiply});
    return true;
  }

  bool columns(const std::string& name, int64_t axis) {
    if (!is_own(model_, readers_, name)) return false;
    const std::vector<int64_t> dims = model_.dims_of(name);
    if (dims.size() != 2 || dims[static_cast<size_t>(axis)] != channels_) return false;
    places_.push_back({name, axis});
    return true;
  }

  const OnnxEdit& model_;
  const Readers& readers_;
  int64_t channels_;
  std::map<std::string, size_t> makers_;
  std::vector<FoldPlace> places_;
};

}  // namespace

bool is_own(const OnnxEdit& model, const Readers& readers, const std::string& name) {
  const auto found = readers.find(name);
  return model.is_initializer(name) && model.is_f32(name) && found != readers.end() &&
         found->second.size() == 1 && !model.is_pinned(name);
}

std::optional<std::vector<FoldPlace>> places_to_divide(const OnnxEdit& model,
                                                       const Readers& readers,
                                                       const std::string& value, int64_t channels) {
  Folder folder(model, readers, channels);
  if (!folder.divide(value)) return {};
  return std::move(folder.places());
}

}  // namespace heddle::quantize
