#include "quantize/rewrite.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace heddle::quantize {

using import::OnnxEdit;
using import::OnnxNode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

Result<Literal> value_now(const OnnxEdit& model, const Plan& plan, const std::string& name) {
  const auto found = plan.values.find(name);
  if (found != plan.values.end()) return found->second;
  return model.value_of(name);
}

namespace {

Literal scalar(float value) {
  Literal literal(Shape::array(Type::f32, {}));
  literal.set_f64(0, value);
  return literal;
}

class Rewriter {
 public:
  Rewriter(OnnxEdit* model, const std::vector<Layer>& layers, const Plan& plan)
      : model_(*model), layers_(layers), plan_(plan), readers_(readers_of(*model)) {
    for (const OnnxNode& node : model_.nodes()) {
      taken_.insert(node.inputs.begin(), node.inputs.end());
      taken_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  Result<std::vector<Stored>> int8() {
    std::vector<Stored> stored(layers_.size());
    for (const auto& [name, value] : plan_.values) model_.set(name, value);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!plan_.chosen[i]) continue;
      const Layer& layer = layers_[i];
      if (layer.kind == Kind::table) {
        HEDDLE_ASSIGN_OR_RETURN(stored[i], table(layer));
        continue;
      }
      quantize_value(layer.input, {layer.node});
      if (!layer.output.empty() && plan_.activations.contains(layer.output))
        quantize_value(layer.output, readers_[layer.output]);
      HEDDLE_ASSIGN_OR_RETURN(stored[i], weights(layer));
    }
    place_values();
    return stored;
  }

  Result<std::vector<Stored>> int4(int64_t block) {
    std::vector<Stored> stored(layers_.size());
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      if (!plan_.chosen[i]) continue;
      if (layer.kind == Kind::table) {
        HEDDLE_ASSIGN_OR_RETURN(stored[i], table(layer));
      } else if (layer.blocks) {
        HEDDLE_ASSIGN_OR_RETURN(stored[i], blocks(i, block));
      }
    }
    return stored;
  }

 private:
  // A name that is not used in the model; deterministic.
  std::string name_of(const std::string& value, const char* suffix) const {
    std::string name = value + suffix;
    while (taken_.contains(name)) name += "_";
    return name;
  }

  // These nodes will read the value through Q and DQ.
  void quantize_value(const std::string& name, const std::vector<size_t>& nodes) {
    values_[name].insert(nodes.begin(), nodes.end());
  }

  void place_values() {
    for (const auto& [name, nodes] : values_) {
      if (nodes.empty()) continue;
      const Params& params = plan_.activations.at(name);
      const std::string scale = name_of(name, "_scale"), zero = name_of(name, "_zero_point");
      model_.add(scale, scalar(params.scale));
      Literal zero_point(Shape::array(params.is_signed ? Type::s8 : Type::u8, {}));
      zero_point.set_s64(0, params.zero);
      model_.add(zero, zero_point);
      const std::string small = name_of(name, "_quantized"), back = name_of(name, "_dequantized");
      const size_t first = *nodes.begin();
      model_.put_before(first, {"QuantizeLinear", "", small, {name, scale, zero}, {small}});
      model_.put_before(first, {"DequantizeLinear", "", back, {small, scale, zero}, {back}});
      for (size_t node : nodes) {
        const OnnxNode& reader = model_.nodes()[node];
        for (size_t i = 0; i < reader.inputs.size(); ++i)
          if (reader.inputs[i] == name) model_.rename_input(node, i, back);
      }
    }
  }

  // Zero points of symmetric weights or biases: the same array for all layers with so many channels.
  std::string zeros(Type type, int64_t channels) {
    std::string name = name_of("zeros_", fmt::format("{}_{}", type_name(type), channels).c_str());
    if (made_.insert(name).second) model_.add(name, Literal(Shape::array(type, {channels})));
    return name;
  }

  // Weights in s8, shared by all layers with the same dimension as output channels.
  struct Small {
    Weights made;
    std::string numbers, suffix;  // suffix of names for this dimension
  };
  Result<Small> small(const std::string& weights, int64_t axis) {
    HEDDLE_ASSIGN_OR_RETURN(const Literal value, value_now(model_, plan_, weights));
    const auto first = axes_.emplace(weights, axis).first->second;
    Small small{quantize_weights(value, axis), "", first == axis ? "" : "_turned"};
    small.numbers = name_of(weights + small.suffix, "_quantized");
    if (made_.insert(small.numbers).second) model_.add(small.numbers, small.made.numbers);
    return small;
  }

  Result<Stored> weights(const Layer& layer) {
    HEDDLE_ASSIGN_OR_RETURN(const Small all, small(layer.weights, layer.axis));
    const Weights& made = all.made;
    const std::string base = layer.weights + all.suffix, scale = name_of(base, "_scale"),
                      back = name_of(base, "_dequantized");
    if (made_.insert(back).second) {
      model_.add(scale, made.scales);
      const std::string zero = zeros(Type::s8, made.scales.elems());
      model_.put_before(layer.node, {"DequantizeLinear",
                                     "",
                                     back,
                                     {all.numbers, scale, zero},
                                     {back},
                                     {{"axis", layer.axis}}});
    }
    rename(layer.node, layer.weights, back);
    if (!layer.bias.empty()) HEDDLE_RETURN_IF_ERROR(bias(layer, made.scales));
    return Stored{made.numbers.bytes() + made.scales.bytes(), made.sqnr};
  }

  // s32 with the product of both scales as scale, if it fits: integer kernels of other runtimes add
  // it.
  Status bias(const Layer& layer, const Literal& scales) {
    if (!model_.is_initializer(layer.bias) || !model_.is_f32(layer.bias) ||
        model_.dims_of(layer.bias) != scales.shape().extents())
      return {};
    HEDDLE_ASSIGN_OR_RETURN(const Literal value, value_now(model_, plan_, layer.bias));
    const float of_input = plan_.activations.at(layer.input).scale;
    Literal small(Shape::array(Type::s32, scales.shape().extents())), both = scales;
    for (int64_t c = 0; c < scales.elems(); ++c) {
      const double step = static_cast<float>(of_input * static_cast<float>(scales.get_f64(c)));
      const double q = std::nearbyint(value.get_f64(c) / step);
      if (!(std::abs(q) < 2147483647.0) || !(step > 1e-37)) return {};
      both.set_f64(c, step);
      small.set_s64(c, static_cast<int64_t>(q));
    }
    const std::string name = layer.bias + "_" + std::to_string(layer.node);
    const std::string numbers = name_of(name, "_quantized"), scale = name_of(name, "_scale"),
                      zero = zeros(Type::s32, scales.elems()), back = name_of(name, "_dequantized");
    model_.add(numbers, small);
    model_.add(scale, both);
    model_.put_before(
        layer.node, {"DequantizeLinear", "", back, {numbers, scale, zero}, {back}, {{"axis", 0}}});
    rename(layer.node, layer.bias, back);
    return {};
  }

  void rename(size_t node, const std::string& from, const std::string& to) {
    const OnnxNode& reader = model_.nodes()[node];
    for (size_t i = 1; i < reader.inputs.size(); ++i)
      if (reader.inputs[i] == from) model_.rename_input(node, i, to);
  }

  // A lookup table: rows of s8, each with a scale, gathered together.
  Result<Stored> table(const Layer& layer) {
    HEDDLE_ASSIGN_OR_RETURN(const Small all, small(layer.weights, 0));
    const Weights& made = all.made;
    const std::string scale = name_of(layer.weights, "_table_scale");
    if (made_.insert(scale).second) {
      Literal scales(Shape::array(Type::f32, {made.scales.elems(), 1}));
      std::memcpy(scales.mutable_data(), made.scales.data(),
                  static_cast<size_t>(made.scales.bytes()));
      model_.add(scale, scales);
    }
    const OnnxNode& node = model_.nodes()[layer.node];
    const std::string &places = node.inputs[1], &result = node.outputs[0];
    const std::string rows = name_of(result, "_rows"), wide = name_of(result, "_f32"),
                      scales = name_of(result, "_row_scales");
    model_.replace(layer.node, {{"Gather", "", rows, {all.numbers, places}, {rows}, {{"axis", 0}}},
                                {"Gather", "", scales, {scale, places}, {scales}, {{"axis", 0}}},
                                {"Cast", "", wide, {rows}, {wide}, {{"to", 1}}},
                                {"Mul", "", node.name, {wide, scales}, {result}}});
    return Stored{made.numbers.bytes() + made.scales.bytes(), made.sqnr};
  }

  Result<Stored> blocks(size_t number, int64_t size) {
    const Layer& layer = layers_[number];
    const std::vector<int64_t> dims = model_.dims_of(layer.weights);
    Blocks made;
    if (const auto before = plan_.blocks.find(number); before != plan_.blocks.end()) {
      made = before->second;
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const Literal value, value_now(model_, plan_, layer.weights));
      made = quantize_blocks(value, layer.axis, size);
    }
    // The quantised weights depend on which of their dimensions is contracted.
    const bool turned = layer.axis == 0;
    const std::string small = name_of(layer.weights, turned ? "_turned_q4" : "_q4"),
                      scale = name_of(layer.weights, turned ? "_turned_scales" : "_scales");
    if (made_.insert(small).second) {
      model_.add(small, made.numbers);
      model_.add(scale, made.scales);
    }
    const OnnxNode& node = model_.nodes()[layer.node];
    OnnxNode product{"MatMulNBits",
                     "com.microsoft",
                     node.name,
                     {layer.input, small, scale},
                     {node.outputs[0]},
                     {{"K", dims[static_cast<size_t>(1 - layer.axis)]},
                      {"N", dims[static_cast<size_t>(layer.axis)]},
                      {"bits", 4},
                      {"block_size", size}}};
    if (layer.bias.empty()) {
      model_.replace(layer.node, {product});
    } else {  // not every runtime supports MatMulNBits' bias
      product.outputs[0] = name_of(node.outputs[0], "_product");
      const OnnxNode sum{
          "Add", "", node.name + "_bias", {product.outputs[0], layer.bias}, {node.outputs[0]}};
      model_.replace(layer.node, {product, sum});
    }
    model_.need_opset("com.microsoft", 1);
    return Stored{made.numbers.bytes() + made.scales.bytes(), made.sqnr};
  }

  OnnxEdit& model_;
  const std::vector<Layer>& layers_;
  const Plan& plan_;
  Readers readers_;
  std::map<std::string, std::set<size_t>> values_;
  std::set<std::string> taken_;          // names of the model's values
  std::set<std::string> made_;           // weights already added in a new form
  std::map<std::string, int64_t> axes_;  // by weights: output channels, in their first layer
};

}  // namespace

Result<std::vector<Stored>> rewrite_int8(OnnxEdit* model, const std::vector<Layer>& layers,
                                         const Plan& plan) {
  return Rewriter(model, layers, plan).int8();
}

Result<std::vector<Stored>> rewrite_int4(OnnxEdit* model, const std::vector<Layer>& layers,
                                         const Plan& plan, int64_t block) {
  return Rewriter(model, layers, plan).int4(block);
}

}  // namespace heddle::quantize
