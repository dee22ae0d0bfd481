#include "quantize/adjust.h"

#include <cmath>

namespace heddle::quantize {

using import::OnnxEdit;
using import::OnnxNode;
using tensor::Literal;

namespace {

bool is_homogeneous(const OnnxNode& node) {
  for (const char* type :
       {"Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Identity", "Dropout"})
    if (node.op_type == type) return true;
  return false;
}

// Dimensions of a layer's weights: [out, in / groups, window].
struct View {
  int64_t out, in, window, groups;
  bool depthwise() const { return groups > 1 && in == 1 && out == groups; }
};

View view_of(const OnnxEdit& model, const Layer& layer) {
  const std::vector<int64_t> dims = model.dims_of(layer.weights);
  View view{dims[0], dims[1], 1, layer.groups};
  for (size_t d = 2; d < dims.size(); ++d) view.window *= dims[d];
  return view;
}

struct Pair {
  size_t first, second;  // layers
};

class Equalizer {
 public:
  Equalizer(const OnnxEdit& model, const std::vector<Layer>& layers, Plan* plan)
      : model_(model), layers_(layers), plan_(*plan), readers_(readers_of(model)) {}

  Result<int64_t> run() {
    std::map<size_t, size_t> by_node;
    for (size_t i = 0; i < layers_.size(); ++i)
      if (layers_[i].kind == Kind::conv) by_node.emplace(layers_[i].node, i);
    std::vector<Pair> pairs;
    for (const auto& [node, first] : by_node) {
      std::string value = model_.nodes()[node].outputs[0];
      auto reader = only_reader(model_, readers_, value);
      while (reader && is_homogeneous(model_.nodes()[*reader])) {
        value = model_.nodes()[*reader].outputs[0];
        reader = only_reader(model_, readers_, value);
      }
      if (!reader || !by_node.contains(*reader)) continue;
      const Pair pair{first, by_node.at(*reader)};
      if (layers_[pair.second].input == value && fits(pair)) pairs.push_back(pair);
    }
    constexpr int kRounds = 20;
    constexpr double kStill = 0.01;  // largest |log s| that counts as no change
    for (int round = 0; round < kRounds; ++round) {
      double most = 0;
      for (const Pair& pair : pairs) {
        HEDDLE_ASSIGN_OR_RETURN(const double moved, move(pair));
        most = std::max(most, moved);
      }
      if (most < kStill) break;
    }
    return static_cast<int64_t>(pairs.size());
  }

 private:
  bool is_own(const std::string& name) const {
    const auto found = readers_.find(name);
    return model_.is_initializer(name) && model_.is_f32(name) && found->second.size() == 1 &&
           !model_.is_pinned(name);
  }
  bool fits(const Pair& pair) const {
    const Layer &a = layers_[pair.first], &b = layers_[pair.second];
    const View from = view_of(model_, a), to = view_of(model_, b);
    const bool channels = to.depthwise() ? to.out == from.out : to.groups == 1 && to.in == from.out;
    return channels && is_own(a.weights) && is_own(b.weights) && (a.bias.empty() || is_own(a.bias));
  }

  // Calls f(element) for all weights of one channel.
  template <typename Function>
  static void each(const View& view, bool output, int64_t channel, Function&& f) {
    if (output) {
      for (int64_t i = 0; i < view.in * view.window; ++i) f(channel * view.in * view.window + i);
      return;
    }
    for (int64_t o = 0; o < view.out; ++o)
      for (int64_t w = 0; w < view.window; ++w) f((o * view.in + channel) * view.window + w);
  }

  Result<double> move(const Pair& pair) {
    const Layer &a = layers_[pair.first], &b = layers_[pair.second];
    const View from = view_of(model_, a), to = view_of(model_, b);
    HEDDLE_ASSIGN_OR_RETURN(Literal front, value_now(model_, plan_, a.weights));
    HEDDLE_ASSIGN_OR_RETURN(Literal back, value_now(model_, plan_, b.weights));
    Literal bias;
    if (!a.bias.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(bias, value_now(model_, plan_, a.bias));
    }
    const auto x = front.mutable_values<float>(), y = back.mutable_values<float>();
    double most = 0;
    for (int64_t c = 0; c < from.out; ++c) {
      float before = 0, behind = 0;
      each(from, true, c,
           [&](int64_t i) { before = std::max(before, std::abs(x[static_cast<size_t>(i)])); });
      each(to, to.depthwise(), c,
           [&](int64_t i) { behind = std::max(behind, std::abs(y[static_cast<size_t>(i)])); });
      const float s = std::sqrt(before / behind);
      if (!std::isfinite(s) || s < 1e-6F || s > 1e6F) continue;
      most = std::max(most, std::abs(std::log(static_cast<double>(s))));
      each(from, true, c, [&](int64_t i) { x[static_cast<size_t>(i)] /= s; });
      each(to, to.depthwise(), c, [&](int64_t i) { y[static_cast<size_t>(i)] *= s; });
      if (!a.bias.empty()) bias.set_f64(c, bias.get_f64(c) / s);
    }
    plan_.values.insert_or_assign(a.weights, std::move(front));
    plan_.values.insert_or_assign(b.weights, std::move(back));
    if (!a.bias.empty()) plan_.values.insert_or_assign(a.bias, std::move(bias));
    return most;
  }

  const OnnxEdit& model_;
  const std::vector<Layer>& layers_;
  Plan& plan_;
  Readers readers_;
};

}  // namespace

Result<int64_t> equalize(const OnnxEdit& model, const std::vector<Layer>& layers, Plan* plan) {
  return Equalizer(model, layers, plan).run();
}

Result<int64_t> correct_biases(const OnnxEdit& model, const std::vector<Layer>& layers,
                               const std::vector<std::vector<double>>& means, Plan* plan) {
  const Readers readers = readers_of(model);
  int64_t corrected = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    if (!plan->chosen[i] || layer.bias.empty() || means[i].empty() ||
        !model.is_initializer(layer.bias) || !model.is_f32(layer.bias) ||
        readers.at(layer.bias).size() != 1 || model.is_pinned(layer.bias))
      continue;
    HEDDLE_ASSIGN_OR_RETURN(const Literal weights, value_now(model, *plan, layer.weights));
    HEDDLE_ASSIGN_OR_RETURN(Literal bias, value_now(model, *plan, layer.bias));
    const Literal rounded = dequantized(quantize_weights(weights, layer.axis), layer.axis);
    const auto x = weights.values<float>(), y = rounded.values<float>();
    const std::vector<int64_t> dims = model.dims_of(layer.weights);
    const int64_t out = dims[static_cast<size_t>(layer.axis)];
    if (bias.elems() != out) continue;
    std::vector<double> added(static_cast<size_t>(out), 0);
    if (layer.kind == Kind::conv) {
      const View view = view_of(model, layer);
      if (static_cast<int64_t>(means[i].size()) != view.in * view.groups) continue;
      const int64_t outs = view.out / view.groups;
      for (int64_t o = 0; o < view.out; ++o)
        for (int64_t c = 0; c < view.in; ++c)
          for (int64_t w = 0; w < view.window; ++w) {
            const auto at = static_cast<size_t>((o * view.in + c) * view.window + w);
            added[static_cast<size_t>(o)] += (static_cast<double>(y[at]) - x[at]) *
                                             means[i][static_cast<size_t>(o / outs * view.in + c)];
          }
    } else {
      const int64_t k = dims[static_cast<size_t>(1 - layer.axis)];
      if (static_cast<int64_t>(means[i].size()) != k) continue;
      for (int64_t o = 0; o < out; ++o)
        for (int64_t c = 0; c < k; ++c) {
          const auto at = static_cast<size_t>(layer.axis == 0 ? o * k + c : c * out + o);
          added[static_cast<size_t>(o)] +=
              (static_cast<double>(y[at]) - x[at]) * means[i][static_cast<size_t>(c)];
        }
    }
    for (int64_t o = 0; o < out; ++o)
      bias.set_f64(o, bias.get_f64(o) - added[static_cast<size_t>(o)]);
    plan->values.insert_or_assign(layer.bias, std::move(bias));
    ++corrected;
  }
  return corrected;
}

}  // namespace heddle::quantize
